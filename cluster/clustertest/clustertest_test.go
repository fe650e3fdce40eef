// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/opdock/opdock/internal/testenv"
)

func TestSharedIsOne(t *testing.T) {
	testenv.ControlPlane(t)
	first := Shared(t)
	t.Run("in another test", func(t *testing.T) {
		if Shared(t) != first {
			t.Error("there are two")
		}
	})
}

func TestNamespaceEndsWithItsTest(t *testing.T) {
	testenv.ControlPlane(t)
	client, err := typedcorev1.NewForConfig(Shared(t).Config())
	if err != nil {
		t.Fatal(err)
	}
	var name string
	t.Run("inner", func(t *testing.T) {
		name = Namespace(t)
		if other := Namespace(t); other == name {
			t.Errorf("two namespaces are both called %s", name)
		}
		if !strings.HasPrefix(name, "namespaceendswithitstest-inner-") {
			t.Errorf("it is called %s", name)
		}
		if _, err := client.Namespaces().Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	})
	// Either gone already or on its way.
	left, err := client.Namespaces().Get(t.Context(), name, metav1.GetOptions{})
	if err == nil && left.DeletionTimestamp == nil || err != nil && !apierrors.IsNotFound(err) {
		t.Errorf("after its test the namespace is %+v, %v", left, err)
	}
}

func TestPrefix(t *testing.T) {
	for test, want := range map[string]string{
		"TestRollout":                    "rollout-",
		"TestRollout/with_a_Surge#01":    "rollout-with-a-surge-01-",
		"Test":                           "test-",
		"Test/äöü":                       "test-",
		"BenchmarkX":                     "benchmarkx-",
		"Test" + strings.Repeat("a", 99): strings.Repeat("a", 40) + "-",
	} {
		got := prefix(test)
		if got != want {
			t.Errorf("%s: got %s, want %s", test, got, want)
		}
	}
}

// A watch may end before the service account is there, for example with an error of a server that is busy.
func TestWatchThatEndsEarly(t *testing.T) {
	for name, test := range map[string]struct {
		events []watch.Event
		want   bool
	}{
		"without a word": {nil, false},
		"with an error":  {[]watch.Event{{Type: watch.Error, Object: &metav1.Status{Reason: metav1.StatusReasonTimeout}}}, false},
		"after a while":  {[]watch.Event{{Type: watch.Bookmark, Object: &corev1.ServiceAccount{}}}, false},
		"never":          {[]watch.Event{{Type: watch.Added, Object: &corev1.ServiceAccount{}}}, true},
	} {
		events := make(chan watch.Event, len(test.events))
		for _, event := range test.events {
			events <- event
		}
		close(events)
		if got := reportsObject(watch.NewProxyWatcher(events)); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}
