// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package collector_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	collectorv1 "github.com/opdock/opdock/api/collector/v1"
	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/controller"
	"github.com/opdock/opdock/internal/controller/collector"
	"github.com/opdock/opdock/internal/fleettest"
	"github.com/opdock/opdock/internal/health"
	"github.com/opdock/opdock/internal/manager"
	"github.com/opdock/opdock/internal/testenv"
)

// TestAnyCrashPointIsFine ends the manager after each single write of what it does, and lets another one go on.
func TestAnyCrashPointIsFine(t *testing.T) {
	t.Parallel()
	for what, step := range map[string]struct {
		before string
		act    func(t *testing.T, c client.Client, namespace string)
		// writes is how many there are at least, so that the test cannot end early by mistake.
		writes int
		want   []string
		pods   []string
	}{
		"create": {
			act: func(t *testing.T, c client.Client, namespace string) {
				t.Helper()
				create(t, c, namespace, "{selector: {}, debounceMilliseconds: 0, output: {configMapName: list}}")
			},
			writes: 2, want: []string{"list"}, pods: []string{"a"},
		},
		"rename": {
			before: "{selector: {}, debounceMilliseconds: 0, output: {configMapName: list}}",
			act: func(t *testing.T, c client.Client, namespace string) {
				t.Helper()
				change(t, c, one(namespace), func(o *collectorv1.Collector) { o.Spec.Output.ConfigMapName = "new" })
			},
			writes: 3, want: []string{"new"}, pods: []string{"a"},
		},
		"pod": {
			before: "{selector: {}, debounceMilliseconds: 0, output: {configMapName: list}}",
			act: func(t *testing.T, c client.Client, namespace string) {
				t.Helper()
				pod := &corev1.Pod{}
				pod.Namespace, pod.Name = namespace, "a"
				if err := c.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
					t.Fatal(err)
				}
			},
			writes: 2, want: []string{"list"},
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c, config := fleettest.Client(t), fleettest.Config(t)
			for after := 1; ; after++ {
				namespace := clustertest.Namespace(t)
				fleettest.Await(t, c, createPod(t, c, namespace, "a", "{}"), isReady)
				if step.before != "" {
					stop := run(t, config, namespace)
					awaitPods(t, c, create(t, c, namespace, step.before), "a")
					stop()
				}
				wire, tapped := fleettest.NewWire(config)
				cut := wire.CutAfter(after)
				stop := run(t, tapped, namespace)
				step.act(t, c, namespace)
				testenv.Await(t, func() string {
					if isClosed(cut) {
						return ""
					}
					object := one(namespace)
					if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
						return err.Error()
					}
					if missing := ready(object); missing != "" {
						return missing
					}
					return holds(object, step.pods)
				})
				stop()
				if !isClosed(cut) {
					if after <= step.writes {
						t.Errorf("there were only %q", wire.Writes())
					}
					return
				}
				stop = run(t, config, namespace)
				object := awaitPods(t, c, one(namespace), step.pods...)
				awaitConfigMap(t, c, object, step.want[0])
				expectConfigMaps(t, c, namespace, step.want...)
				stop()
				if object.Status.ConfigMapName != step.want[0] {
					t.Errorf("after %q the status is %+v", wire.Writes(), object.Status)
				}
			}
		})
	}
}

// TestAConvergedCollectorIsNotWritten counts looks, so it runs alone.
func TestAConvergedCollectorIsNotWritten(t *testing.T) {
	c, namespace := fleettest.Client(t), clustertest.Namespace(t)
	stop := run(t, fleettest.Config(t), namespace)
	createPod(t, c, namespace, "a", "{}")
	createPod(t, c, namespace, "b", "{}")
	before := awaitPods(t, c, create(t, c, namespace, "{selector: {}, output: {configMapName: list}}"), "a", "b")
	awaitPods(t, c, fleettest.Create(t, c, namespace, "{metadata: {name: two}, spec: {selector: {}}}", &collectorv1.Collector{}), "a", "b")
	stop()
	before = awaitPods(t, c, before, "a", "b")

	wire, config := fleettest.NewWire(fleettest.Config(t))
	looks := fleettest.Looks(t, "Collector")
	stop = run(t, config, namespace)
	awaitLooks := func(more int) {
		testenv.Await(t, func() string {
			if fleettest.Looks(t, "Collector") < looks+more {
				return "not all Collectors were looked at"
			}
			return ""
		})
	}
	awaitLooks(2)
	// A label that is not ours makes the manager look once more.
	change(t, c, configMap(namespace, "list"), func(m *corev1.ConfigMap) { m.Labels["example.com/note"] = "hello" })
	awaitLooks(3)
	stop()
	if writes := wire.AllWrites(); len(writes) > 0 {
		t.Errorf("it has written %q", writes)
	}

	// What was counted is kept, and goes on with the next real change.
	looks = fleettest.Looks(t, "Collector")
	stop = run(t, fleettest.Config(t), namespace)
	awaitLooks(2)
	createPod(t, c, namespace, "c", "{}")
	after := awaitPods(t, c, before.DeepCopy(), "a", "b", "c")
	stop()
	was, is := map[string]int64{}, map[string]int64{}
	for _, event := range before.Status.Events {
		was[event.Kind+string(event.Type)] = event.Count
	}
	for _, event := range after.Status.Events {
		is[event.Kind+string(event.Type)] = event.Count
	}
	// The pods that were there when the manager was restarted do not count as added again.
	if is["PodAdded"] != was["PodAdded"]+1 || is["CollectorAdded"] != was["CollectorAdded"] || after.Status.Reconciles <= before.Status.Reconciles {
		t.Errorf("before: %v in %d reconciles, after: %v in %d", was, before.Status.Reconciles, is, after.Status.Reconciles)
	}
}

// TestWhatNoSchemaWouldAllowStalls changes the schema, so it runs alone.
func TestWhatNoSchemaWouldAllowStalls(t *testing.T) {
	c, namespace := setUp(t)
	createPod(t, c, namespace, "a", "{}")
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"selector": map[string]any{
		"matchExpressions": []any{map[string]any{"key": "app", "operator": "Resembles"}},
	}}}}
	object.SetGroupVersionKind(collectors.GroupVersionKind)
	object.SetNamespace(namespace)
	object.SetName("one")
	fleettest.CreateUnchecked(t, c, collectors, object)
	made := fleettest.Await(t, c, one(namespace), func(o *collectorv1.Collector) string {
		return fleettest.Stalled(o.Status.Conditions, o.Generation, collector.ReasonInvalidSelector)
	})
	// Without what the schema fills in, the defaults are the same.
	change(t, c, made, func(o *collectorv1.Collector) { o.Spec = collectorv1.CollectorSpec{} })
	awaitPods(t, c, made, "a")
}

func isReady(pod *corev1.Pod) string {
	if !health.IsReady(pod) {
		return "the pod is not ready"
	}
	return ""
}

func isClosed(channel <-chan struct{}) bool {
	select {
	case <-channel:
		return true
	default:
		return false
	}
}

// TestEveryNamespaceIsLookedAfter: with one namespace, as in the other tests, the caches are of another make than with
// several or all. With all it would disturb others, so it runs alone.
func TestEveryNamespaceIsLookedAfter(t *testing.T) {
	c := fleettest.Client(t)
	for name, limited := range map[string]bool{"several": true, "all": false} {
		t.Run(name, func(t *testing.T) {
			namespaces := []string{clustertest.Namespace(t), clustertest.Namespace(t)}
			options := manager.Options{Kinds: []controller.Kind{collectors}}
			if limited {
				options.Namespaces = namespaces
			}
			fleettest.Run(t, fleettest.Config(t), options)
			for _, namespace := range namespaces {
				createPod(t, c, namespace, "a", "{}")
				object := create(t, c, namespace, "{selector: {}, debounceMilliseconds: 0, output: {configMapName: first}}")
				awaitPods(t, c, object, "a")
				change(t, c, object, func(o *collectorv1.Collector) { o.Spec.Output.ConfigMapName = "second" })
				object = awaitPods(t, c, object, "a")
				awaitConfigMap(t, c, object, "second")
				expectConfigMaps(t, c, namespace, "second")
			}
		})
	}
}
