// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	// Set once for all tests and not by each, which would keep them from running in parallel.
	home, err := os.MkdirTemp("", "opdock-e2e-")
	if err == nil {
		err = os.Setenv("OPDOCK_HOME", home)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "making a home for the clusters of the tests:", err)
		return 1
	}
	defer os.RemoveAll(home)
	waitInParallel()
	return testenv.Main(m)
}

// waitInParallel runs more tests at once than there are processors, because most of them wait most of the time: a
// namespace takes ten seconds to go, an autoscaler fifteen to say its first word. A -parallel of the user wins.
func waitInParallel() {
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen {
		_ = flag.Set("test.parallel", "10")
	}
}

// world is a place for one test: a namespace of its own in the control plane that all tests share.
type world struct {
	kubernetes.Interface
	dynamic   dynamic.Interface
	cluster   *cluster.Cluster
	namespace string
}

// newWorld makes the test run in parallel with the others.
func newWorld(t *testing.T) *world {
	t.Helper()
	testenv.ControlPlane(t)
	t.Parallel()
	c := clustertest.Shared(t)
	w := &world{Interface: clientFor(t, c.Config()), cluster: c, namespace: clustertest.Namespace(t)}
	var err error
	if w.dynamic, err = dynamic.NewForConfig(c.Config()); err != nil {
		t.Fatal(err)
	}
	return w
}

func clientFor(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

const (
	// patience is for what takes a control plane seconds, on a machine that has a lot else to do.
	patience = 90 * time.Second
)

// within is a context for something that may hang: it ends with the test, or when patience does.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	t.Cleanup(cancel)
	return ctx
}

// next waits for the next change that a watch reports.
func next(t *testing.T, changes watch.Interface) watch.Event {
	t.Helper()
	select {
	case change, more := <-changes.ResultChan():
		if !more {
			t.Fatal("the watch has ended")
		}
		return change
	case <-time.After(patience):
		t.Fatalf("nothing has changed for %v", patience)
	}
	return watch.Event{}
}

// expect is an error unless the two are the same.
func expect[T comparable](what string, got, want T) error {
	if got != want {
		return fmt.Errorf("%s is %v, not %v", what, got, want)
	}
	return nil
}

// must is for what has to work for the test to make sense: must(client.Create(…))(t).
func must[T any](value T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// try is must for what returns nothing but an error.
func try(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// container is the one that pods of these tests have.
func container(image string) corev1.Container {
	return corev1.Container{Name: "main", Image: image}
}

// behaviourAnnotation chooses what a simulated pod does.
const behaviourAnnotation = "opdock.dev/behaviour"

// behaving is the annotation of a pod that behaves in some way; none for the empty one.
func behaving(behaviour string) map[string]string {
	if behaviour == "" {
		return nil
	}
	return map[string]string{behaviourAnnotation: behaviour}
}

func configMap(name string, owners ...metav1.OwnerReference) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: owners}}
}
