// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package collector_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	collectorv1 "github.com/opdock/opdock/api/collector/v1"
	sharedv1 "github.com/opdock/opdock/api/shared/v1"
	"github.com/opdock/opdock/internal/controller/collector"
	"github.com/opdock/opdock/internal/fleettest"
	"github.com/opdock/opdock/internal/flow"
	"github.com/opdock/opdock/internal/health"
)

func TestHandEditsOfTheConfigMapAreRepaired(t *testing.T) {
	t.Parallel()
	c, namespace := setUp(t)
	createPod(t, c, namespace, "a", "{}")
	object := awaitPods(t, c, create(t, c, namespace, "{selector: {}, output: {configMapName: list}}"), "a")
	live := awaitConfigMap(t, c, object, "list")
	for what, edit := range map[string]func(*corev1.ConfigMap){
		"a key":     func(m *corev1.ConfigMap) { m.Data[collector.KeyIPs] = "1.2.3.4\n" },
		"no key":    func(m *corev1.ConfigMap) { delete(m.Data, collector.KeyAddresses) },
		"our label": func(m *corev1.ConfigMap) { delete(m.Labels, flow.LabelManagedBy) },
	} {
		change(t, c, live, edit)
		repaired := fleettest.Await(t, c, configMap(namespace, "list"), func(m *corev1.ConfigMap) string {
			if m.ResourceVersion == live.ResourceVersion || m.Labels[flow.LabelManagedBy] != flow.ManagedBy {
				return what + " has not been repaired"
			}
			return ""
		})
		if repaired.UID != live.UID {
			t.Errorf("%s: it is another ConfigMap", what)
		}
		live = awaitConfigMap(t, c, object, "list")
	}
	if err := c.Delete(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	awaitConfigMap(t, c, object, "list")
	awaitPods(t, c, object, "a")
}

// Pods that go on changing delay the next list, but not the correction of this one.
func TestHandEditsAreRepairedDuringAPause(t *testing.T) {
	t.Parallel()
	c, namespace := setUp(t)
	running := func(name string) {
		t.Helper()
		createPod(t, c, namespace, name, "{}")
		fleettest.Await(t, c, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}, func(p *corev1.Pod) string {
			if !health.IsReady(p) {
				return "it is not ready"
			}
			return ""
		})
	}
	running("a")
	// Longer than a test waits.
	object := awaitPods(t, c, create(t, c, namespace, "{selector: {}, debounceMilliseconds: 600000, output: {configMapName: list}}"), "a")
	before := awaitConfigMap(t, c, object, "list").Data[collector.KeyIPs]
	running("b")
	expect := func(what string) *corev1.ConfigMap {
		t.Helper()
		return fleettest.Await(t, c, configMap(namespace, "list"), func(m *corev1.ConfigMap) string {
			if m.Data[collector.KeyIPs] != before || m.Labels[flow.LabelManagedBy] != flow.ManagedBy {
				return what + " has not been repaired: " + m.Data[collector.KeyIPs]
			}
			return ""
		})
	}
	for what, edit := range map[string]func(*corev1.ConfigMap){
		"a key":     func(m *corev1.ConfigMap) { m.Data[collector.KeyIPs] = "1.2.3.4\n" },
		"our label": func(m *corev1.ConfigMap) { delete(m.Labels, flow.LabelManagedBy) },
	} {
		change(t, c, configMap(namespace, "list"), edit)
		expect(what)
	}
	if err := c.Delete(t.Context(), expect("everything")); err != nil {
		t.Fatal(err)
	}
	expect("a deletion")
}

func TestAForeignConfigMapIsLeftAlone(t *testing.T) {
	t.Parallel()
	c, namespace := setUp(t)
	foreign := fleettest.Create(t, c, namespace, "{metadata: {name: taken}, data: {ips.txt: mine}}", &corev1.ConfigMap{})
	createPod(t, c, namespace, "a", "{}")
	object := create(t, c, namespace, "{selector: {}, debounceMilliseconds: 10, output: {configMapName: list}}")
	object = awaitPods(t, c, object, "a")
	change(t, c, object, func(o *collectorv1.Collector) { o.Spec.Output.ConfigMapName = "taken" })
	object = fleettest.Await(t, c, object, func(o *collectorv1.Collector) string {
		return fleettest.Stalled(o.Status.Conditions, o.Generation, flow.ReasonResourceExists)
	})
	// Until the name is free, the old ConfigMap is what there is, and it stays up to date.
	createPod(t, c, namespace, "b", "{}")
	object = fleettest.Await(t, c, object, func(o *collectorv1.Collector) string { return holds(o, []string{"a", "b"}) })
	awaitConfigMap(t, c, object, "list")
	if object.Status.ConfigMapName != "list" {
		t.Errorf("the status names %q", object.Status.ConfigMapName)
	}
	now := fleettest.Await(t, c, configMap(namespace, "taken"), func(*corev1.ConfigMap) string { return "" })
	if now.ResourceVersion != foreign.ResourceVersion {
		t.Errorf("it has been changed: %+v", now)
	}
	if err := c.Delete(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	object = awaitPods(t, c, object, "a", "b")
	awaitConfigMap(t, c, object, "taken")
	expectConfigMaps(t, c, namespace, "taken")
}

// A ConfigMap that a finalizer holds still offers an old list under the old name.
func TestNotReadyWhileTheOldConfigMapExists(t *testing.T) {
	t.Parallel()
	c, namespace := setUp(t)
	object := create(t, c, namespace, "{selector: {}, output: {configMapName: first}}")
	fleettest.Await(t, c, object, ready)
	change(t, c, configMap(namespace, "first"), func(live *corev1.ConfigMap) { live.Finalizers = []string{"example.com/hold"} })
	change(t, c, object, func(o *collectorv1.Collector) { o.Spec.Output.ConfigMapName = "second" })
	fleettest.Await(t, c, object, func(o *collectorv1.Collector) string {
		condition := meta.FindStatusCondition(o.Status.Conditions, sharedv1.ConditionReady)
		if condition.ObservedGeneration != o.Generation || condition.Reason != "Deleting" || o.Status.ConfigMapName != "second" {
			return condition.Reason + ": " + condition.Message
		}
		return ""
	})
	change(t, c, configMap(namespace, "first"), func(live *corev1.ConfigMap) { live.Finalizers = nil })
	fleettest.Await(t, c, object, ready)
}

// A ConfigMap that has lost its labels is in no list, and after a rename only the status knows its name.
func TestAConfigMapWithoutLabelsIsDeletedAfterARename(t *testing.T) {
	t.Parallel()
	c, namespace := setUp(t)
	object := create(t, c, namespace, "{selector: {}, output: {configMapName: first}}")
	object = fleettest.Await(t, c, object, ready)
	change(t, c, object, func(o *collectorv1.Collector) { o.Spec.Suspend = true })
	object = fleettest.Await(t, c, object, func(o *collectorv1.Collector) string {
		return fleettest.Condition(o.Status.Conditions, o.Generation, sharedv1.ConditionReady, metav1.ConditionUnknown, flow.ReasonSuspended)
	})
	change(t, c, configMap(namespace, "first"), func(live *corev1.ConfigMap) { live.Labels = nil })
	change(t, c, object, func(o *collectorv1.Collector) { o.Spec.Suspend, o.Spec.Output.ConfigMapName = false, "second" })
	fleettest.AwaitGone(t, c, configMap(namespace, "first"))
	fleettest.Await(t, c, object, ready)
	expectConfigMaps(t, c, namespace, "second")
}
