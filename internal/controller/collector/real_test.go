// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package collector_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	collectorv1 "github.com/opdock/opdock/api/collector/v1"
	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/config/samples"
	"github.com/opdock/opdock/internal/controller"
	"github.com/opdock/opdock/internal/controller/collector"
	"github.com/opdock/opdock/internal/fleettest"
	"github.com/opdock/opdock/internal/flow"
	"github.com/opdock/opdock/internal/manager"
	"github.com/opdock/opdock/internal/testenv"
)

var collectors = controller.Kinds[slices.IndexFunc(controller.Kinds, func(k controller.Kind) bool { return k.Kind == "Collector" })]

func run(t *testing.T, config *rest.Config, namespace string) (stop func()) {
	t.Helper()
	return fleettest.Run(t, config, manager.Options{Namespaces: []string{namespace}, Kinds: []controller.Kind{collectors}})
}

// setUp returns a client and a namespace that a manager looks after.
func setUp(t *testing.T) (client.WithWatch, string) {
	t.Helper()
	c, namespace := fleettest.Client(t), clustertest.Namespace(t)
	run(t, fleettest.Config(t), namespace)
	return c, namespace
}

// create creates a Collector called one, which does not wait for pauses unless the spec says so.
func create(t *testing.T, c client.Client, namespace, spec string) *collectorv1.Collector {
	t.Helper()
	return fleettest.Create(t, c, namespace, "{metadata: {name: one}, spec: "+spec+"}", &collectorv1.Collector{})
}

func createPod(t *testing.T, c client.Client, namespace, name, labels string) *corev1.Pod {
	t.Helper()
	return fleettest.Create(t, c, namespace, "{metadata: {name: "+name+", labels: "+labels+"}, spec: {containers: [{name: c, image: i}]}}", &corev1.Pod{})
}

func one(namespace string) *collectorv1.Collector {
	return &collectorv1.Collector{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "one"}}
}

func configMap(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func change[T client.Object](t *testing.T, c client.Client, object T, how func(T)) T {
	t.Helper()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		t.Fatal(err)
	}
	patch := client.MergeFrom(object.DeepCopyObject().(client.Object))
	how(object)
	if err := c.Patch(t.Context(), object, patch); err != nil {
		t.Fatalf("changing %T: %v", object, err)
	}
	return object
}

func ready(c *collectorv1.Collector) string {
	return fleettest.Ready(c.Status.Conditions, c.Generation)
}

// awaitPods waits until the Collector is ready and holds ready addresses of these pods, in any order, and no others.
func awaitPods(t *testing.T, c client.Client, object *collectorv1.Collector, want ...string) *collectorv1.Collector {
	t.Helper()
	return fleettest.Await(t, c, object, func(object *collectorv1.Collector) string {
		if missing := ready(object); missing != "" {
			return missing
		}
		return holds(object, want)
	})
}

func holds(object *collectorv1.Collector, want []string) string {
	var got []string
	for _, address := range object.Status.Addresses {
		if address.Ready {
			got = append(got, address.Pod)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) || int(object.Status.AddressCount) != len(want) || int(object.Status.ReadyAddressCount) != len(want) {
		return fmt.Sprintf("it holds addresses of %q, not of %q: %+v", got, want, object.Status)
	}
	return ""
}

// awaitConfigMap waits until the ConfigMap holds what the status of the Collector holds.
func awaitConfigMap(t *testing.T, c client.Client, object *collectorv1.Collector, name string) *corev1.ConfigMap {
	t.Helper()
	return fleettest.Await(t, c, configMap(object.Namespace, name), func(live *corev1.ConfigMap) string {
		var ips []string
		for _, address := range object.Status.Addresses {
			ips = append(ips, address.IP+"\n")
		}
		var details []collectorv1.Address
		if err := json.Unmarshal([]byte(live.Data[collector.KeyAddresses]), &details); err != nil {
			return err.Error()
		}
		if live.Data[collector.KeyIPs] != strings.Join(ips, "") || len(details) != len(ips) {
			return fmt.Sprintf("it holds %q", live.Data)
		}
		return ""
	})
}

func expectConfigMaps(t *testing.T, c client.Client, namespace string, want ...string) {
	t.Helper()
	testenv.Await(t, func() string {
		var list corev1.ConfigMapList
		if err := c.List(t.Context(), &list, client.InNamespace(namespace), client.MatchingLabels{flow.LabelManagedBy: flow.ManagedBy}); err != nil {
			return err.Error()
		}
		var names []string
		for _, live := range list.Items {
			names = append(names, live.Name)
		}
		if !slices.Equal(names, want) {
			return fmt.Sprintf("there are ConfigMaps %q, not %q", names, want)
		}
		return ""
	})
}

func TestSamplesBecomeReady(t *testing.T) {
	t.Parallel()
	c, namespace := setUp(t)
	createPod(t, c, namespace, "web-1", "{tier: web}")
	createPod(t, c, namespace, "web-2", "{tier: web, canary: yes-it-is}")
	createPod(t, c, namespace, "db", "{tier: db}")
	fleettest.Create(t, c, namespace, `
metadata: {name: front}
spec:
  selector: {matchLabels: {tier: web, app: front}}
  template: {metadata: {labels: {tier: web, app: front}}, spec: {containers: [{name: x, image: x}]}}
`, &appsv1.Deployment{})
	made := map[string]*collectorv1.Collector{}
	for _, file := range []string{"collector_v1_collector.yaml", "collector_v1_collector_full.yaml"} {
		manifest, err := samples.Manifests.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sample := fleettest.Create(t, c, namespace, string(manifest), &collectorv1.Collector{})
		made[sample.Name] = sample
	}
	fleettest.Await(t, c, made["all-pods"], func(all *collectorv1.Collector) string {
		if all.Status.ReadyAddressCount != 4 || ready(all) != "" {
			return fmt.Sprintf("the status is %+v", all.Status)
		}
		return ""
	})
	web := fleettest.Await(t, c, made["web-allow-list"], func(web *collectorv1.Collector) string {
		if web.Status.ReadyAddressCount != 2 || ready(web) != "" {
			return fmt.Sprintf("the status is %+v", web.Status)
		}
		return ""
	})
	owners := map[string]bool{}
	for _, address := range web.Status.Addresses {
		if address.Node == "" || address.IP == "" || !address.Ready {
			t.Errorf("an address is %+v", address)
		}
		if address.Owner != nil {
			owners[address.Owner.Kind+"/"+address.Owner.Name] = true
		}
	}
	if len(owners) != 1 || !owners["Deployment/front"] {
		t.Errorf("the owners are %v", owners)
	}
	if web.Status.ConfigMapName != "web-allow-list" || web.Status.LastChangeTime == nil {
		t.Errorf("the status is %+v", web.Status)
	}
	awaitConfigMap(t, c, web, "web-allow-list")
}

// Pods of the fleet are in another cache than all others.
func TestPodsOfTheFleetAreCollected(t *testing.T) {
	t.Parallel()
	c, namespace := setUp(t)
	createPod(t, c, namespace, "ours", "{app: web, "+flow.LabelManagedBy+": "+flow.ManagedBy+"}")
	moving := createPod(t, c, namespace, "moving", "{app: web}")
	createPod(t, c, namespace, "others", "{app: web, "+flow.LabelManagedBy+": helm}")
	object := create(t, c, namespace, "{selector: {matchLabels: {app: web}}, debounceMilliseconds: 10}")
	awaitPods(t, c, object, "ours", "moving", "others")
	change(t, c, moving, func(pod *corev1.Pod) { pod.Labels[flow.LabelManagedBy] = flow.ManagedBy })
	late := createPod(t, c, namespace, "late", "{app: web, "+flow.LabelManagedBy+": "+flow.ManagedBy+"}")
	awaitPods(t, c, object, "ours", "moving", "others", "late")
	if err := c.Delete(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	change(t, c, moving, func(pod *corev1.Pod) { delete(pod.Labels, flow.LabelManagedBy) })
	awaitPods(t, c, object, "ours", "moving", "others")
}

func TestChangesOfPodsAreNoticed(t *testing.T) {
	t.Parallel()
	c, namespace := setUp(t)
	// What is there when the manager starts does not count, so it has to be running.
	awaitPods(t, c, fleettest.Create(t, c, namespace, "{metadata: {name: earlier}, spec: {selector: {}}}", &collectorv1.Collector{}))
	object := create(t, c, namespace, "{selector: {matchLabels: {app: web}}, readiness: Ready, debounceMilliseconds: 10}")
	awaitPods(t, c, object)
	a := createPod(t, c, namespace, "a", "{app: web}")
	b := createPod(t, c, namespace, "b", "{app: web}")
	createPod(t, c, namespace, "other", "{app: db}")
	awaitPods(t, c, object, "a", "b")
	change(t, c, a, func(pod *corev1.Pod) { pod.Labels["app"] = "db" })
	awaitPods(t, c, object, "b")
	change(t, c, a, func(pod *corev1.Pod) { pod.Labels["app"] = "web" })
	awaitPods(t, c, object, "a", "b")
	change(t, c, b, func(pod *corev1.Pod) { pod.Annotations = map[string]string{"opdock.dev/behaviour": "never-ready"} })
	awaitPods(t, c, object, "a")
	if err := c.Delete(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	object = awaitPods(t, c, object)
	counted := map[string]int64{}
	for _, event := range object.Status.Events {
		counted[event.Kind+" "+string(event.Type)] = event.Count
	}
	// The labels of a changed twice, and b ceased to be ready; how many more there were is the kubelet's business.
	if counted["Pod Added"] != 2 || counted["Pod Modified"] < 3 || counted["Collector Added"] != 1 || object.Status.Reconciles < 6 {
		t.Errorf("the events are %v, in %d reconciles", counted, object.Status.Reconciles)
	}
}

func TestSpecChanges(t *testing.T) {
	t.Parallel()
	c, namespace := setUp(t)
	createPod(t, c, namespace, "a", "{app: web}")
	createPod(t, c, namespace, "b", "{app: db}")
	object := create(t, c, namespace, "{selector: {}, debounceMilliseconds: 10}")
	awaitPods(t, c, object, "a", "b")
	change(t, c, object, func(o *collectorv1.Collector) { o.Spec.Selector.MatchLabels = map[string]string{"app": "web"} })
	awaitPods(t, c, object, "a")
	change(t, c, object, func(o *collectorv1.Collector) { o.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv6Protocol} })
	awaitPods(t, c, object)
	change(t, c, object, func(o *collectorv1.Collector) { o.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol} })
	object = awaitPods(t, c, object, "a")
	change(t, c, object, func(o *collectorv1.Collector) { o.Spec.Output = &collectorv1.CollectorOutput{ConfigMapName: "first"} })
	object = awaitPods(t, c, object, "a")
	awaitConfigMap(t, c, object, "first")
	change(t, c, object, func(o *collectorv1.Collector) { o.Spec.Output.ConfigMapName = "second" })
	object = awaitPods(t, c, object, "a")
	awaitConfigMap(t, c, object, "second")
	expectConfigMaps(t, c, namespace, "second")
	if object.Status.ConfigMapName != "second" {
		t.Errorf("the status names %q", object.Status.ConfigMapName)
	}
	change(t, c, object, func(o *collectorv1.Collector) { o.Spec.Output = nil })
	if object = awaitPods(t, c, object, "a"); object.Status.ConfigMapName != "" {
		t.Errorf("the status names %q", object.Status.ConfigMapName)
	}
	expectConfigMaps(t, c, namespace)
}

func TestAnUnfinishedPauseIsOverWhenTheSpecChanges(t *testing.T) {
	t.Parallel()
	c, namespace := fleettest.Client(t), clustertest.Namespace(t)
	wire, config := fleettest.NewWire(fleettest.Config(t))
	run(t, config, namespace)
	object := create(t, c, namespace, "{selector: {}, debounceMilliseconds: 600000}")
	awaitPods(t, c, object)
	for i := range 10 {
		createPod(t, c, namespace, fmt.Sprintf("pod-%d", i), "{}")
	}
	// Another Collector, which does not wait, shows that the pods are there.
	quick := fleettest.Create(t, c, namespace, "{metadata: {name: quick}, spec: {selector: {}, debounceMilliseconds: 0}}", &collectorv1.Collector{})
	all := []string{"pod-0", "pod-1", "pod-2", "pod-3", "pod-4", "pod-5", "pod-6", "pod-7", "pod-8", "pod-9"}
	awaitPods(t, c, quick, all...)
	writes := 0
	for _, write := range wire.Writes() {
		if strings.Contains(write, "collectors/one/") {
			writes++
		}
	}
	if writes != 1 {
		t.Errorf("it was written %d times before its pause was over", writes)
	}
	change(t, c, object, func(o *collectorv1.Collector) { *o.Spec.DebounceMilliseconds = 0 })
	awaitPods(t, c, object, all...)
}

func TestSuspendLeavesEverythingAsItIs(t *testing.T) {
	t.Parallel()
	c, namespace := setUp(t)
	createPod(t, c, namespace, "a", "{}")
	object := awaitPods(t, c, create(t, c, namespace, "{selector: {}, debounceMilliseconds: 0, output: {configMapName: list}}"), "a")
	change(t, c, object, func(o *collectorv1.Collector) { o.Spec.Suspend = true })
	object = fleettest.Await(t, c, object, func(o *collectorv1.Collector) string {
		return fleettest.Condition(o.Status.Conditions, o.Generation, "Ready", metav1.ConditionUnknown, flow.ReasonSuspended)
	})
	createPod(t, c, namespace, "b", "{}")
	// Another Collector shows that the pod has been seen.
	quick := fleettest.Create(t, c, namespace, "{metadata: {name: quick}, spec: {selector: {}, debounceMilliseconds: 0}}", &collectorv1.Collector{})
	awaitPods(t, c, quick, "a", "b")
	now := fleettest.Await(t, c, object, func(*collectorv1.Collector) string { return "" })
	if now.ResourceVersion != object.ResourceVersion || now.Status.AddressCount != 1 {
		t.Errorf("it has been written: %+v", now.Status)
	}
	change(t, c, object, func(o *collectorv1.Collector) { o.Spec.Suspend = false })
	object = awaitPods(t, c, object, "a", "b")
	awaitConfigMap(t, c, object, "list")
}

func TestDeletionLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			c, namespace := setUp(t)
			object := awaitPods(t, c, create(t, c, namespace, "{selector: {}, output: {configMapName: list}}"))
			if err := c.Delete(t.Context(), object, client.PropagationPolicy(policy)); err != nil {
				t.Fatal(err)
			}
			fleettest.AwaitGone(t, c, object)
			if policy != metav1.DeletePropagationOrphan {
				fleettest.AwaitGone(t, c, configMap(namespace, "list"))
				return
			}
			fleettest.Await(t, c, configMap(namespace, "list"), func(m *corev1.ConfigMap) string {
				if len(m.OwnerReferences) > 0 {
					return "it is still owned"
				}
				return ""
			})
		})
	}
}
