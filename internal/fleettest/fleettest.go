// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fleettest runs the fleet in tests, on the real control plane that the tests of a test binary share.
package fleettest

import (
	"context"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"go.uber.org/zap/zapcore"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/yaml"

	sharedv1 "github.com/opdock/opdock/api/shared/v1"
	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/controller"
	"github.com/opdock/opdock/internal/manager"
	"github.com/opdock/opdock/internal/testenv"
)

var (
	install   sync.Once
	installed error
)

// The loggers of the process are shared and must not be changed while anything runs. The log of a manager goes to its
// test.
func init() {
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
}

// Config is how to reach the control plane, with all rights and without limits. The CRDs of the fleet are installed
// there. Without a control plane the test is skipped.
func Config(t testing.TB) *rest.Config {
	t.Helper()
	testenv.ControlPlane(t)
	config := rest.CopyConfig(clustertest.Shared(t).Config())
	config.QPS = -1
	install.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testenv.Patience)
		defer cancel()
		installed = controller.Install(ctx, config, controller.Kinds)
	})
	if installed != nil {
		t.Fatal(installed)
	}
	return config
}

// Client reads from the server and knows the kinds of the fleet.
func Client(t testing.TB) client.WithWatch {
	t.Helper()
	scheme, err := controller.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.NewWithWatch(Config(t), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Run starts a manager for the test and stops it when the test ends, or earlier with the function that it returns. To
// keep tests apart, give it the test's namespace.
func Run(t testing.TB, config *rest.Config, o manager.Options) (stop func()) {
	t.Helper()
	if o.Logger.GetSink() == nil {
		o.Logger = zap.New(zap.WriteTo(&testWriter{t: t}), zap.ConsoleEncoder(), zap.StacktraceLevel(zapcore.PanicLevel))
	}
	mgr, err := manager.New(config, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("the manager ended with: %v", err)
			}
		})
	}
	t.Cleanup(stop)
	return stop
}

// Create creates the object of a manifest in a namespace.
func Create[T client.Object](t testing.TB, c client.Client, namespace, manifest string, object T) T {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(manifest), object); err != nil {
		t.Fatalf("reading the manifest: %v", err)
	}
	object.SetNamespace(namespace)
	if err := c.Create(t.Context(), object); err != nil {
		t.Fatalf("creating %T: %v", object, err)
	}
	return object
}

// Await waits until the condition holds for the object, which says by its type, namespace and name which one is meant.
// The condition returns what is still missing, and "" if nothing is; an object that does not exist is given as nil UID.
func Await[T client.Object](t testing.TB, c client.Client, object T, missing func(T) string) T {
	t.Helper()
	key := client.ObjectKeyFromObject(object)
	var last string
	testenv.Await(t, func() string {
		fresh := object.DeepCopyObject().(T)
		err := c.Get(t.Context(), key, fresh)
		switch {
		case apierrors.IsNotFound(err):
			last = "it does not exist"
			return last
		case err != nil:
			return err.Error()
		}
		object = fresh
		return missing(fresh)
	})
	return object
}

// AwaitGone waits until the object does not exist any more.
func AwaitGone(t testing.TB, c client.Client, object client.Object) {
	t.Helper()
	key := client.ObjectKeyFromObject(object)
	testenv.Await(t, func() string {
		err := c.Get(t.Context(), key, object)
		if apierrors.IsNotFound(err) {
			return ""
		}
		if err != nil {
			return err.Error()
		}
		return key.String() + " still exists"
	})
}

// Ready returns what keeps the conditions from saying that the generation is ready.
func Ready(conditions []metav1.Condition, generation int64) string {
	return Condition(conditions, generation, sharedv1.ConditionReady, metav1.ConditionTrue, "")
}

// Stalled returns what keeps the conditions from saying that the generation is stalled for the reason.
func Stalled(conditions []metav1.Condition, generation int64, reason string) string {
	return Condition(conditions, generation, sharedv1.ConditionStalled, metav1.ConditionTrue, reason)
}

// Condition returns how a condition differs from what is expected; an empty reason matches any.
func Condition(conditions []metav1.Condition, generation int64, conditionType string, status metav1.ConditionStatus, reason string) string {
	condition := meta.FindStatusCondition(conditions, conditionType)
	switch {
	case condition == nil:
		return "there is no condition " + conditionType
	case condition.ObservedGeneration != generation:
		return conditionType + " is about another generation"
	case condition.Status != status || reason != "" && condition.Reason != reason:
		return conditionType + " is " + string(condition.Status) + ", " + condition.Reason + ": " + condition.Message
	default:
		return ""
	}
}

// testWriter hands lines to the test's log while the test runs.
type testWriter struct{ t testing.TB }

func (w *testWriter) Write(line []byte) (int, error) {
	if w.t.Context().Err() == nil {
		w.t.Logf("%s", line)
	}
	return len(line), nil
}
