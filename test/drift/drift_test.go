// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package drift_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/fleettest"
	"github.com/opdock/opdock/internal/manager"
	"github.com/opdock/opdock/internal/testenv"
)

var (
	edits = flag.Int("edits", 12, "how many random edits each kind of owner gets")
	seed  = flag.Uint64("seed", 1, "what the edits are made from; 0 takes a new one each time")
)

// startingSeed is the seed of a test. The edits are the same each time by default: a failure must come from a change of
// the code. make soak looks for new ones.
func startingSeed(t *testing.T) uint64 {
	t.Helper()
	start := *seed
	if start == 0 {
		start = uint64(time.Now().UnixNano())
	}
	t.Logf("to see the same edits again: -seed %d -edits %d", start, *edits)
	return start
}

// owners are custom resources with children of all kinds, and with lists that have one item.
var owners = []struct{ name, manifest, children string }{
	{"AppService", `
apiVersion: app.example.com/v1
kind: AppService
metadata: {name: shop}
spec:
  image: nginx
  size: 2
  envs: [{name: MODE, value: fast}, {name: LEVEL, value: $(MODE)}]
  ports: [{name: http, port: 80}, {name: admin, port: 8080}]
  resources: {limits: {cpu: 500m, memory: 64Mi}}
  podMetadata: {labels: {tier: web}, annotations: {note: mine}}
  ingress: {rules: [{host: shop.example.com}]}
  disruptionBudget: {maxUnavailable: 1}
  networkPolicy: {}
`, "Deployment Service Ingress PodDisruptionBudget NetworkPolicy"},
	{"AppService that is scaled", `
apiVersion: app.example.com/v1
kind: AppService
metadata: {name: shop}
spec:
  image: nginx
  ports: [{name: http, port: 80}]
  autoscaling: {minReplicas: 2, maxReplicas: 4}
`, "Deployment Service HorizontalPodAutoscaler"},
	{"Robot", `
apiVersion: robot.llleon.io/v1
kind: Robot
metadata: {name: welder}
spec:
  replicas: 2
  template:
    spec:
      initContainers: [{name: first, image: busybox}, {name: second, image: busybox}]
      containers: [{name: arm, image: nginx, env: [{name: MODE, value: fast}]}]
`, "Deployment"},
	{"Collector", `
apiVersion: collector.ip/v1
kind: Collector
metadata: {name: addresses}
spec: {selector: {matchLabels: {none: such}}, output: {configMapName: addresses}}
`, "ConfigMap"},
	{"PodCluster", `
apiVersion: kubegroup.generals.space/v1
kind: PodCluster
metadata: {name: ring}
spec:
  podReplicas: 2
  template:
    metadata: {labels: {tier: ring}, annotations: {note: mine}}
    spec: {containers: [{name: main, image: nginx}], initContainers: [{name: first, image: busybox}]}
`, "Pod ControllerRevision"},
	{"KAPP", `
apiVersion: kanggege.k8sio.com/v1
kind: KAPP
metadata: {name: store}
spec:
  components:
    - name: web
      resource: {apiVersion: app.example.com/v1, kind: AppService, spec: {image: nginx, size: 1, ports: [{name: http, port: 80}, {name: admin, port: 8080}]}}
    - name: members
      resource: {apiVersion: kubegroup.generals.space/v1, kind: PodCluster, spec: {podReplicas: 1}}
    - name: workers
      resource: {apiVersion: robot.llleon.io/v1, kind: Robot, spec: {replicas: 1}}
    - name: addresses
      resource: {apiVersion: collector.ip/v1, kind: Collector, spec: {selector: {matchLabels: {none: such}}}}
`, "AppService PodCluster Robot Collector"},
}

var kinds = []schema.GroupVersionKind{
	{Group: "apps", Version: "v1", Kind: "Deployment"}, {Version: "v1", Kind: "Service"}, {Version: "v1", Kind: "ConfigMap"}, {Version: "v1", Kind: "Pod"},
	{Group: "apps", Version: "v1", Kind: "ControllerRevision"},
	{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"}, {Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"},
	{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"}, {Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"},
	{Group: "app.example.com", Version: "v1", Kind: "AppService"}, {Group: "robot.llleon.io", Version: "v1", Kind: "Robot"},
	{Group: "kubegroup.generals.space", Version: "v1", Kind: "PodCluster"}, {Group: "collector.ip", Version: "v1", Kind: "Collector"},
}

func TestRandomEditor(t *testing.T) {
	config := fleettest.Config(t)
	start := startingSeed(t)
	for i, owner := range owners {
		t.Run(owner.name, func(t *testing.T) {
			s := &stage{T: t, Client: fleettest.Client(t), namespace: clustertest.Namespace(t)}
			fleettest.Run(t, config, manager.Options{Namespaces: []string{s.namespace}})
			s.create(owner.manifest)
			s.learn(strings.Fields(owner.children))
			e := &editor{Rand: rand.New(rand.NewPCG(start, uint64(i))), waits: true}
			made := 0
			for tries := 0; made < *edits && tries < 20**edits; tries++ {
				if s.disturb(e) {
					made++
				}
			}
			if made < *edits {
				t.Errorf("the server took only %d of the edits", made)
			}
		})
	}
}

// stage is an owner and its children as they should be.
type stage struct {
	*testing.T
	client.Client
	namespace string
	owner     *unstructured.Unstructured
	children  []*unstructured.Unstructured
}

// create creates the owner and waits until it is ready.
func (s *stage) create(manifest string) {
	s.Helper()
	s.submit(manifest)
	testenv.Await(s, s.notReady)
}

// submit creates the owner.
func (s *stage) submit(manifest string) {
	s.Helper()
	s.owner = &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &s.owner.Object); err != nil {
		s.Fatal(err)
	}
	s.owner.SetNamespace(s.namespace)
	if err := s.Create(s.Context(), s.owner); err != nil {
		s.Fatal(err)
	}
}

// notReady returns what keeps the owner from being ready.
func (s *stage) notReady() string {
	ready, generation, err := s.ready()
	switch {
	case err != nil:
		return err.Error()
	case ready["status"] == "True" && ready["observedGeneration"] == generation:
		return ""
	default:
		return fmt.Sprintf("Ready is %v: %v", ready["status"], ready["message"])
	}
}

// reason and message are those of the condition Ready.
func (s *stage) reason() string  { return s.conditionField("reason") }
func (s *stage) message() string { return s.conditionField("message") }

func (s *stage) conditionField(name string) string {
	ready, _, err := s.ready()
	if err != nil {
		return err.Error()
	}
	value, _ := ready[name].(string)
	return value
}

// ready is the condition Ready of the owner; it is nil if there is none.
func (s *stage) ready() (condition map[string]any, generation int64, err error) {
	fresh := s.owner.DeepCopy()
	if err := s.Get(s.Context(), client.ObjectKeyFromObject(fresh), fresh); err != nil {
		return nil, 0, err
	}
	conditions, _, _ := unstructured.NestedSlice(fresh.Object, "status", "conditions")
	for _, one := range conditions {
		if one := one.(map[string]any); one["type"] == "Ready" {
			condition = one
		}
	}
	return condition, fresh.GetGeneration(), nil
}

// learn remembers the children of the given kinds.
func (s *stage) learn(wanted []string) {
	s.Helper()
	for _, gvk := range kinds {
		if !slices.Contains(wanted, gvk.Kind) {
			continue
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk)
		if err := s.List(s.Context(), list, client.InNamespace(s.namespace)); err != nil {
			s.Fatal(err)
		}
		before := len(s.children)
		for i := range list.Items {
			if metav1.IsControlledBy(&list.Items[i], s.owner) {
				s.children = append(s.children, list.Items[i].DeepCopy())
			}
		}
		if len(s.children) == before {
			s.Fatalf("there is no %s", gvk.Kind)
		}
	}
}

// disturb makes an edit and waits until it is corrected. It returns false if the server does not take the edit, or if it
// changes nothing.
func (s *stage) disturb(e *editor) bool {
	s.Helper()
	wanted := s.children[e.IntN(len(s.children))]
	live := wanted.DeepCopy()
	if err := s.Get(s.Context(), client.ObjectKeyFromObject(live), live); err != nil {
		s.Fatalf("reading %s %s: %v", wanted.GetKind(), wanted.GetName(), err)
	}
	edited, what := e.edit(live)
	how := []string{"update", "patch", "apply", "scale"}[e.IntN(4)]
	version := live.GetResourceVersion()
	who := "editor"
	if e.IntN(4) == 0 {
		who = s.ownName(live, how)
	}
	if err := s.send(who, how, live, edited); err != nil {
		// Most random values are invalid.
		return false
	}
	if how == "scale" {
		what = "scales"
	}
	after := wanted.DeepCopy()
	if err := s.Get(s.Context(), client.ObjectKeyFromObject(after), after); err == nil && after.GetResourceVersion() == version {
		return false
	}
	s.Logf("%s %s: %s by %s of %s", wanted.GetKind(), wanted.GetName(), what, how, who)
	honest := &honesty{}
	testenv.Await(s, func() string {
		began := time.Now()
		fresh := wanted.DeepCopy()
		if err := s.Get(s.Context(), client.ObjectKeyFromObject(fresh), fresh); err != nil {
			return err.Error()
		}
		if difference := cmp.Diff(s.essence(wanted), s.essence(fresh)); difference != "" {
			if s.notReady() == "" && !honest.holds(fresh.GetUID(), began, time.Now()) {
				s.Fatalf("the owner is Ready for more than %v while %s %s differs after the edit that %s by %s:\n%s",
					mostReady, wanted.GetKind(), wanted.GetName(), what, how, difference)
			}
			return fmt.Sprintf("%s %s is not corrected after the edit that %s by %s:\n%s", wanted.GetKind(), wanted.GetName(), what, how, difference)
		}
		return s.notReady()
	})
	return true
}

// ownName returns the field manager of the fleet for a child, if its misuse is promised to be found: not for pods, which the
// fleet updates under that name, and not by server-side apply. It is found from the second after the creation on.
func (s *stage) ownName(live *unstructured.Unstructured, how string) string {
	s.Helper()
	if live.GetKind() == "Pod" || live.GetKind() == "ControllerRevision" || how == "apply" {
		return "editor"
	}
	testenv.Await(s, func() string {
		if age := time.Since(live.GetCreationTimestamp().Time); age < 2*time.Second {
			return fmt.Sprintf("%s is %v old", live.GetName(), age)
		}
		return ""
	})
	return "opdock-" + strings.ToLower(s.owner.GetKind())
}

// send makes a change in one of the ways in which writers do.
func (s *stage) send(who, how string, live, edited *unstructured.Unstructured) error {
	manager := client.FieldOwner(who)
	switch how {
	case "update":
		return s.Update(s.Context(), edited, manager)
	case "patch":
		return s.Patch(s.Context(), edited, client.MergeFrom(live), manager)
	case "apply":
		edited.SetManagedFields(nil)
		edited.SetResourceVersion("")
		unstructured.RemoveNestedField(edited.Object, "status")
		data, err := json.Marshal(edited.Object)
		if err != nil {
			return err
		}
		return s.Patch(s.Context(), live.DeepCopy(), client.RawPatch(types.ApplyPatchType, data), client.FieldOwner("applier"), client.ForceOwnership)
	default:
		if !slices.Contains([]string{"Deployment", "AppService", "Robot", "PodCluster"}, live.GetKind()) {
			return apierrors.NewBadRequest("it has no scale")
		}
		scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 7}}
		return s.SubResource("scale").Update(s.Context(), live.DeepCopy(), client.WithSubResourceBody(scale), manager)
	}
}

// essence is what must be the same again: what a child asks for, and the metadata that belongs to the fleet. Addresses and
// ports that the server chooses may be others.
func (s *stage) essence(child *unstructured.Unstructured) map[string]any {
	child = child.DeepCopy()
	result := map[string]any{}
	for _, field := range []string{"spec", "data", "binaryData", "immutable"} {
		if value, has := child.Object[field]; has {
			result[field] = value
		}
	}
	labels := child.GetLabels()
	result["labels"] = []string{
		labels["app.kubernetes.io/managed-by"], labels["app.kubernetes.io/name"], labels["app.kubernetes.io/instance"], labels["tier"],
		labels["controller-revision-hash"], labels["apps.kubernetes.io/pod-index"],
	}
	annotations := child.GetAnnotations()
	// The hash is another one while the number of pods is the autoscaler's.
	result["annotations"] = []any{len(annotations["opdock.dev/applied"]), annotations["note"], ownerReference(child, s.owner)}
	switch child.GetKind() {
	case "Service":
		for _, field := range []string{"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"} {
			unstructured.RemoveNestedField(result, "spec", field)
		}
	case "Pod":
		unstructured.RemoveNestedField(result, "spec", "nodeName")
		unstructured.RemoveNestedField(result, "spec", "volumes")
		// The order of tolerations does not matter.
		tolerations, _, _ := unstructured.NestedSlice(result, "spec", "tolerations")
		slices.SortFunc(tolerations, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		_ = unstructured.SetNestedSlice(result, tolerations, "spec", "tolerations")
		for _, list := range []string{"containers", "initContainers"} {
			containers, _, _ := unstructured.NestedSlice(result, "spec", list)
			for _, container := range containers {
				delete(container.(map[string]any), "volumeMounts")
			}
			_ = unstructured.SetNestedSlice(result, containers, "spec", list)
		}
	case "Deployment":
		if autoscaled, _, _ := unstructured.NestedMap(s.owner.Object, "spec", "autoscaling"); autoscaled != nil {
			count, _, _ := unstructured.NestedInt64(result, "spec", "replicas")
			_ = unstructured.SetNestedField(result, count >= 2 && count <= 4, "spec", "replicas")
		}
	}
	return result
}
