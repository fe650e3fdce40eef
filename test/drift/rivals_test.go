// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package drift_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/fleettest"
	"github.com/opdock/opdock/internal/manager"
	"github.com/opdock/opdock/internal/testenv"
)

// sidecar adds a container, and replaces the image of the other one, as injectors and mirrors do.
const sidecar = `containers: [Object.spec.template.spec.containers{name: "sidecar", image: "sidecar"},
	Object.spec.template.spec.containers{name: "app", image: "mirror/nginx"}]`

// mounting is a sidecar with a volume.
const mounting = `volumes: [Object.spec.template.spec.volumes{name: "injected", emptyDir: Object.spec.template.spec.volumes.emptyDir{}}],
	containers: [Object.spec.template.spec.containers{name: "sidecar", image: "sidecar",
		volumeMounts: [Object.spec.template.spec.containers.volumeMounts{name: "injected", mountPath: "/injected"}]}]`

// once limits an injector to new objects.
var once = admissionregistrationv1.MatchCondition{Name: "once", Expression: `request.operation == "CREATE"`}

// inject lets the server add what to every Deployment of the namespace on each write. Conditions limit the writes.
func inject(t *testing.T, c client.Client, namespace, what string, conditions ...admissionregistrationv1.MatchCondition) {
	t.Helper()
	metadata := metav1.ObjectMeta{Name: "injector-" + namespace}
	policy := &admissionregistrationv1.MutatingAdmissionPolicy{
		ObjectMeta: metadata,
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			FailurePolicy: ptr.To(admissionregistrationv1.Fail), ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
			MatchConditions: conditions,
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}},
				}}},
			},
			Mutations: []admissionregistrationv1.Mutation{{
				PatchType: admissionregistrationv1.PatchTypeApplyConfiguration,
				ApplyConfiguration: &admissionregistrationv1.ApplyConfiguration{
					Expression: `Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{` + what + `}}}}`,
				},
			}},
		},
	}
	binding := &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metadata, Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: metadata.Name},
	}
	for _, object := range []client.Object{policy, binding} {
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Delete(context.WithoutCancel(t.Context()), object) })
	}
	labels := map[string]string{"probe": "probe"}
	testenv.Await(t, func() string {
		probe := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "probe"}, Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "nginx"}}},
			},
		}}
		switch err := c.Create(t.Context(), probe, client.DryRunAll); {
		case err != nil:
			return err.Error()
		case len(probe.Spec.Template.Spec.Containers) < 2:
			return "nothing is injected"
		}
		return ""
	})
}

func TestAdmissionIsNoDrift(t *testing.T) {
	s := &stage{T: t, Client: fleettest.Client(t), namespace: clustertest.Namespace(t)}
	inject(t, s.Client, s.namespace, sidecar)
	stop := fleettest.Run(t, fleettest.Config(t), manager.Options{Namespaces: []string{s.namespace}})
	s.create(owners[0].manifest)
	s.learn([]string{"Deployment"})
	containers := func() (images []string) {
		deployment := &appsv1.Deployment{}
		if err := s.Get(t.Context(), client.ObjectKeyFromObject(s.children[0]), deployment); err != nil {
			t.Fatal(err)
		}
		for _, container := range deployment.Spec.Template.Spec.Containers {
			images = append(images, container.Image)
		}
		slices.Sort(images)
		return images
	}
	if got := containers(); !slices.Equal(got, []string{"mirror/nginx", "sidecar"}) {
		t.Fatalf("the images are %v", got)
	}
	// A person's change is corrected, and what was injected stays.
	patch := client.RawPatch(types.StrategicMergePatchType,
		[]byte(`{"spec": {"template": {"spec": {"hostNetwork": true, "containers": [{"name": "spy", "image": "spy"}]}}}}`))
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.children[0].GetName()}}
	if err := s.Patch(t.Context(), deployment, patch, client.FieldOwner("person")); err != nil {
		t.Fatal(err)
	}
	testenv.Await(t, func() string {
		if got := containers(); !slices.Equal(got, []string{"mirror/nginx", "sidecar"}) {
			return "the images are " + strings.Join(got, " ")
		}
		return s.notReady()
	})
	testenv.Await(t, func() string { return s.noEvent("DriftCorrected", "hostNetwork was added by person") })
	// After a restart no child is written again.
	stop()
	wire, config := fleettest.NewWire(fleettest.Config(t))
	fleettest.Run(t, config, manager.Options{Namespaces: []string{s.namespace}})
	s.createAnother()
	if writes := wire.Writes(); slices.ContainsFunc(writes, func(write string) bool { return strings.HasSuffix(write, "/shop") }) {
		t.Errorf("a restart writes %v", writes)
	}
	if found := s.events("DriftCorrected", "hostNetwork was added by person"); len(found) != 1 || found[0].Series != nil {
		t.Errorf("what was corrected is not said once: %+v", found)
	}
}

// An injector that leaves its container alone if it is there does not restore it after an edit.
func TestEditsOfInjectedContainers(t *testing.T) {
	s := &stage{T: t, Client: fleettest.Client(t), namespace: clustertest.Namespace(t)}
	inject(t, s.Client, s.namespace, sidecar, admissionregistrationv1.MatchCondition{
		Name: "absent", Expression: `!object.spec.template.spec.containers.exists(one, one.name == "sidecar")`,
	})
	fleettest.Run(t, fleettest.Config(t), manager.Options{Namespaces: []string{s.namespace}})
	s.create(owners[0].manifest)
	s.learn([]string{"Deployment"})
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.children[0].GetName()}}
	for _, edit := range []string{`"image": "evil"`, `"env": [{"name": "LD_PRELOAD", "value": "evil"}]`} {
		patch := client.RawPatch(types.StrategicMergePatchType, []byte(`{"spec": {"template": {"spec": {"containers": [{"name": "sidecar", `+edit+`}]}}}}`))
		if err := s.Patch(t.Context(), deployment.DeepCopy(), patch, client.FieldOwner("person")); err != nil {
			t.Fatal(err)
		}
		testenv.Await(t, func() string {
			live := &appsv1.Deployment{}
			if err := s.Get(t.Context(), client.ObjectKeyFromObject(deployment), live); err != nil {
				return err.Error()
			}
			sidecar := slices.IndexFunc(live.Spec.Template.Spec.Containers, func(one corev1.Container) bool { return one.Name == "sidecar" })
			if sidecar < 0 || live.Spec.Template.Spec.Containers[sidecar].Image != "sidecar" || len(live.Spec.Template.Spec.Containers[sidecar].Env) > 0 {
				return "the sidecar is not as it was injected"
			}
			return s.notReady()
		})
	}
	testenv.Await(t, func() string {
		return s.noEvent("DriftCorrected", `spec.template.spec.containers[name="sidecar"].image was added by person`)
	})
}

// An injector that only acts on new objects does not add again what a correction removes.
func TestEditsOfWhatIsInjectedOnce(t *testing.T) {
	s := &stage{T: t, Client: fleettest.Client(t), namespace: clustertest.Namespace(t)}
	inject(t, s.Client, s.namespace, sidecar, once)
	fleettest.Run(t, fleettest.Config(t), manager.Options{Namespaces: []string{s.namespace}})
	s.create(owners[0].manifest)
	s.learn([]string{"Deployment"})
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.children[0].GetName()}}
	patch := client.RawPatch(types.StrategicMergePatchType,
		[]byte(`{"spec": {"template": {"spec": {"containers": [{"name": "sidecar", "env": [{"name": "LD_PRELOAD", "value": "evil"}]}]}}}}`))
	if err := s.Patch(t.Context(), deployment.DeepCopy(), patch, client.FieldOwner("person")); err != nil {
		t.Fatal(err)
	}
	testenv.Await(t, func() string {
		live := &appsv1.Deployment{}
		if err := s.Get(t.Context(), client.ObjectKeyFromObject(deployment), live); err != nil {
			return err.Error()
		}
		if len(live.Spec.Template.Spec.Containers) != 1 {
			return "there is a container with a foreign variable"
		}
		return s.notReady()
	})
	testenv.Await(t, func() string {
		return s.noEvent("DriftCorrected", `admission did not add spec.template.spec.containers[name="sidecar"] again`)
	})
}

// An injected container keeps the server from removing the volume that was edited. When the edit is taken back, all is well.
func TestEditsOfAnInjectedVolume(t *testing.T) {
	for name, volumes := range map[string]string{"beside its own": "volumes: [{name: own, emptyDir: {}}]\n      ", "alone": ""} {
		t.Run(name, func(t *testing.T) {
			s := &stage{T: t, Client: fleettest.Client(t), namespace: clustertest.Namespace(t)}
			inject(t, s.Client, s.namespace, mounting, once)
			fleettest.Run(t, fleettest.Config(t), manager.Options{Namespaces: []string{s.namespace}})
			s.create(strings.Replace(owners[2].manifest, "initContainers:", volumes+"initContainers:", 1))
			s.learn([]string{"Deployment"})
			for range 2 {
				s.editTemplate(`{"volumes": [{"name": "injected", "emptyDir": {"medium": "Memory"}}]}`)
				testenv.Await(t, func() string {
					if reason, message := s.reason(), s.message(); reason != "Invalid" || !strings.Contains(message, `Not found: "injected"`) {
						return reason + ": " + message
					}
					return ""
				})
				s.editTemplate(`{"volumes": [{"name": "injected", "emptyDir": {"medium": null}}]}`)
				testenv.Await(t, s.notReady)
			}
			template := s.template()
			if !slices.ContainsFunc(template.Volumes, func(one corev1.Volume) bool { return one.Name == "injected" }) || len(template.Containers) != 2 {
				t.Errorf("the pods have become %+v", template)
			}
		})
	}
}

// What is injected beside an added field stays, although no manager owns anything else there.
func TestEditsBesideWhatIsInjectedOnce(t *testing.T) {
	for name, edit := range map[string]string{
		"a volume":                `{"volumes": [{"name": "added", "emptyDir": {}}]}`,
		"two volumes and a mount": `{"volumes": [{"name": "added", "emptyDir": {}}, {"name": "more", "emptyDir": {}}], "containers": [{"name": "arm", "volumeMounts": [{"name": "more", "mountPath": "/more"}]}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := &stage{T: t, Client: fleettest.Client(t), namespace: clustertest.Namespace(t)}
			inject(t, s.Client, s.namespace, mounting, once)
			fleettest.Run(t, fleettest.Config(t), manager.Options{Namespaces: []string{s.namespace}})
			s.create(owners[2].manifest)
			s.learn([]string{"Deployment"})
			before := s.template()
			s.editTemplate(edit)
			testenv.Await(t, func() string {
				if after := s.template(); !apiequality.Semantic.DeepEqual(before, after) {
					return fmt.Sprintf("the pods have become %+v: %s", after, s.message())
				}
				return s.notReady()
			})
			testenv.Await(t, func() string {
				return s.noEvent("DriftCorrected", `spec.template.spec.volumes[name="added"] was added by person`)
			})
		})
	}
}

// editTemplate changes the pods of the first child, which is a Deployment.
func (s *stage) editTemplate(spec string) {
	s.Helper()
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.children[0].GetName()}}
	patch := client.RawPatch(types.StrategicMergePatchType, []byte(`{"spec": {"template": {"spec": `+spec+`}}}`))
	if err := s.Patch(s.Context(), deployment, patch, client.FieldOwner("person")); err != nil {
		s.Fatal(err)
	}
}

func (s *stage) template() corev1.PodSpec {
	s.Helper()
	deployment := &appsv1.Deployment{}
	if err := s.Get(s.Context(), client.ObjectKeyFromObject(s.children[0]), deployment); err != nil {
		s.Fatal(err)
	}
	return deployment.Spec.Template.Spec
}

// createAnother creates an owner that a manager gets to after all that were there before it, and waits until it is ready.
func (s *stage) createAnother() {
	s.Helper()
	other := &stage{T: s.T, Client: s.Client, namespace: s.namespace}
	other.create(strings.NewReplacer("name: welder", "name: another").Replace(owners[2].manifest))
}

// The name of a field manager is free to choose, so the fleet's own name does not hide an edit.
func TestEditsUnderTheNameOfTheFleet(t *testing.T) {
	s := &stage{T: t, Client: fleettest.Client(t), namespace: clustertest.Namespace(t)}
	fleettest.Run(t, fleettest.Config(t), manager.Options{Namespaces: []string{s.namespace}})
	s.create(owners[2].manifest)
	s.learn([]string{"Deployment"})
	s.ownName(s.children[0], "patch")
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.children[0].GetName()}}
	// The first edit is of a child as it was created, and the second one of a child that was applied since.
	for _, edit := range []string{
		`{"spec": {"paused": true, "replicas": 5}}`, `{"spec": {"template": {"spec": {"hostNetwork": true}}}}`, `{"spec": {"replicas": 4}}`,
	} {
		if err := s.Patch(t.Context(), deployment.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(edit)), client.FieldOwner("opdock-robot")); err != nil {
			t.Fatal(err)
		}
		testenv.Await(t, func() string {
			live := &appsv1.Deployment{}
			if err := s.Get(t.Context(), client.ObjectKeyFromObject(deployment), live); err != nil {
				return err.Error()
			}
			if live.Spec.Paused || *live.Spec.Replicas != 2 || live.Spec.Template.Spec.HostNetwork {
				return "not corrected: " + edit
			}
			return s.notReady()
		})
	}
	testenv.Await(t, func() string {
		return s.noEvent("DriftCorrected", "spec.template.spec.hostNetwork was added by opdock-robot")
	})
}

// A controller that undoes each repair at once is not fought for ever.
func TestContestedField(t *testing.T) {
	s := &stage{T: t, Client: fleettest.Client(t), namespace: clustertest.Namespace(t)}
	wire, config := fleettest.NewWire(fleettest.Config(t))
	fleettest.Run(t, config, manager.Options{Namespaces: []string{s.namespace}})
	s.create(owners[2].manifest)
	s.learn([]string{"Deployment"})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.rival(ctx)
	}()
	testenv.Await(t, func() string {
		if reason := s.reason(); reason != "FieldContested" {
			return "the reason is " + reason
		}
		return ""
	})
	if message := s.message(); !strings.Contains(message, "spec.paused was added by rival") {
		t.Errorf("the message is %q", message)
	}
	if writes := len(wire.Writes()); writes > 60 {
		t.Errorf("there were %d writes", writes)
	}
	stop()
	<-done
	// Once the rival is gone, the next attempt is the last one.
	testenv.Await(t, s.notReady)
}

// rival pauses the Deployment whenever it is not paused.
func (s *stage) rival(ctx context.Context) {
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.children[0].GetName()}}
	watcher, err := s.watcher().Watch(ctx, &appsv1.DeploymentList{}, client.InNamespace(s.namespace))
	if err != nil {
		s.Errorf("watching Deployments: %v", err)
		return
	}
	defer watcher.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case happened, open := <-watcher.ResultChan():
			if !open {
				return
			}
			if live, ok := happened.Object.(*appsv1.Deployment); !ok || live.Spec.Paused {
				continue
			}
			patch := client.RawPatch(types.MergePatchType, []byte(`{"spec": {"paused": true}}`))
			if err := s.Patch(ctx, deployment.DeepCopy(), patch, client.FieldOwner("rival")); err != nil && ctx.Err() == nil {
				s.Errorf("pausing: %v", err)
				return
			}
		}
	}
}

func (s *stage) watcher() client.WithWatch { return s.Client.(client.WithWatch) }

// noEvent returns what is missing until there is an event about the owner with the reason and the text.
func (s *stage) noEvent(reason, text string) string {
	if len(s.events(reason, text)) > 0 {
		return ""
	}
	var notes []string
	for _, event := range s.events(reason, "") {
		notes = append(notes, event.Note)
	}
	return "there is no such event, only " + strings.Join(notes, "; ")
}

// events returns the events about the owner with the reason and the text.
func (s *stage) events(reason, text string) (found []eventsv1.Event) {
	s.Helper()
	var list eventsv1.EventList
	if err := s.List(s.Context(), &list, client.InNamespace(s.namespace)); err != nil {
		s.Fatal(err)
	}
	for _, event := range list.Items {
		if event.Regarding.UID == s.owner.GetUID() && event.Reason == reason && strings.Contains(event.Note, text) {
			found = append(found, event)
		}
	}
	return found
}
