// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package robot_test

import (
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	robotv1 "github.com/opdock/opdock/api/robot/v1"
	sharedv1 "github.com/opdock/opdock/api/shared/v1"
	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/config/samples"
	"github.com/opdock/opdock/internal/controller"
	"github.com/opdock/opdock/internal/fleettest"
	"github.com/opdock/opdock/internal/flow"
	"github.com/opdock/opdock/internal/manager"
	"github.com/opdock/opdock/internal/testenv"
)

func strategy(kind appsv1.DeploymentStrategyType) *sharedv1.DeploymentStrategy {
	return &sharedv1.DeploymentStrategy{Type: kind}
}

var robots = controller.Kinds[slices.IndexFunc(controller.Kinds, func(k controller.Kind) bool { return k.Kind == "Robot" })]

func run(t *testing.T, config *rest.Config, namespace string) (stop func()) {
	t.Helper()
	return fleettest.Run(t, config, manager.Options{Namespaces: []string{namespace}, Kinds: []controller.Kind{robots}})
}

// setUp returns a client and a namespace that a manager looks after.
func setUp(t *testing.T) (client.WithWatch, string) {
	t.Helper()
	c, namespace := fleettest.Client(t), clustertest.Namespace(t)
	run(t, fleettest.Config(t), namespace)
	return c, namespace
}

func robot(namespace, name string) *robotv1.Robot {
	return &robotv1.Robot{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func deployment(namespace, name string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func create(t *testing.T, c client.Client, namespace, spec string) *robotv1.Robot {
	t.Helper()
	return fleettest.Create(t, c, namespace, "apiVersion: robot.llleon.io/v1\nkind: Robot\nmetadata: {name: one}\nspec: "+spec, &robotv1.Robot{})
}

// change changes the spec of a Robot or whatever else, and returns what it is then.
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

func awaitReady(t *testing.T, c client.Client, robot *robotv1.Robot) *robotv1.Robot {
	t.Helper()
	return fleettest.Await(t, c, robot, ready)
}

func ready(robot *robotv1.Robot) string {
	return fleettest.Ready(robot.Status.Conditions, robot.Generation)
}

func awaitStalled(t *testing.T, c client.Client, robot *robotv1.Robot, reason string) *robotv1.Robot {
	t.Helper()
	return fleettest.Await(t, c, robot, func(robot *robotv1.Robot) string {
		return fleettest.Stalled(robot.Status.Conditions, robot.Generation, reason)
	})
}

// deploymentNames are the names of all Deployments in a namespace.
func deploymentNames(t *testing.T, c client.Client, namespace string) []string {
	t.Helper()
	var list appsv1.DeploymentList
	if err := c.List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, deployment := range list.Items {
		names = append(names, deployment.Name)
	}
	return names
}

func expectDeployments(t *testing.T, c client.Client, namespace string, want ...string) {
	t.Helper()
	if got := deploymentNames(t, c, namespace); !slices.Equal(got, want) {
		t.Errorf("there are Deployments %q, not %q", got, want)
	}
}

// notes are the texts of the events about an object that have a reason.
func notes(t *testing.T, c client.Client, object client.Object, reason string) []string {
	t.Helper()
	var list eventsv1.EventList
	if err := c.List(t.Context(), &list, client.InNamespace(object.GetNamespace())); err != nil {
		t.Fatal(err)
	}
	var result []string
	for _, event := range list.Items {
		if event.Regarding.UID == object.GetUID() && event.Reason == reason {
			result = append(result, event.Note)
		}
	}
	return result
}

func TestSamplesBecomeReady(t *testing.T) {
	t.Parallel()
	c, namespace := setUp(t)
	for file, want := range map[string]struct{ name, deployment, image string }{
		"robot_v1_robot.yaml":      {"robot-one", "robot-one", "nginx:1.29"},
		"robot_v1_robot_full.yaml": {"welder", "welder-workers", "busybox:1.37"},
	} {
		manifest, err := samples.Manifests.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		made := fleettest.Create(t, c, namespace, string(manifest), &robotv1.Robot{})
		made = awaitReady(t, c, made)
		status := made.Status
		if status.AvailableReplicas != 2 || status.Replicas != 2 || status.UpdatedReplicas != 2 || status.ReadyReplicas != 2 || status.DeploymentName != want.deployment {
			t.Errorf("%s: status is %+v", file, status)
		}
		if status.Selector != "app.kubernetes.io/instance="+want.name+",app.kubernetes.io/name=robot" {
			t.Errorf("%s: selector is %q", file, status.Selector)
		}
		live := fleettest.Await(t, c, deployment(namespace, want.deployment), func(*appsv1.Deployment) string { return "" })
		for _, container := range live.Spec.Template.Spec.Containers {
			if container.Image != want.image {
				t.Errorf("%s: image is %q", file, container.Image)
			}
		}
		testenv.Await(t, func() string {
			if got := notes(t, c, made, flow.ReasonSynced); len(got) != 1 || got[0] != "Created Deployment "+want.deployment {
				return fmt.Sprintf("%s: events are %q", file, got)
			}
			return ""
		})
	}
}

func TestSpecChangesRollOut(t *testing.T) {
	t.Parallel()
	c, namespace := setUp(t)
	one := awaitReady(t, c, create(t, c, namespace, "{}"))
	for _, step := range []struct {
		what   string
		change func(*robotv1.RobotSpec)
		check  func(appsv1.DeploymentSpec) bool
	}{
		{"replicas", func(s *robotv1.RobotSpec) { s.Replicas = ptr.To[int32](3) },
			func(d appsv1.DeploymentSpec) bool { return *d.Replicas == 3 }},
		{"image", func(s *robotv1.RobotSpec) { s.Image = "nginx:2" },
			func(d appsv1.DeploymentSpec) bool { return d.Template.Spec.Containers[0].Image == "nginx:2" }},
		{"strategy Recreate", func(s *robotv1.RobotSpec) { s.Strategy = strategy(appsv1.RecreateDeploymentStrategyType) },
			func(d appsv1.DeploymentSpec) bool {
				return d.Strategy.Type == appsv1.RecreateDeploymentStrategyType && d.Strategy.RollingUpdate == nil
			}},
		{"strategy RollingUpdate", func(s *robotv1.RobotSpec) { s.Strategy = strategy(appsv1.RollingUpdateDeploymentStrategyType) },
			func(d appsv1.DeploymentSpec) bool { return d.Strategy.RollingUpdate != nil }},
		{"strategy Recreate again", func(s *robotv1.RobotSpec) { s.Strategy = strategy(appsv1.RecreateDeploymentStrategyType) },
			func(d appsv1.DeploymentSpec) bool { return d.Strategy.Type == appsv1.RecreateDeploymentStrategyType }},
		{"no strategy", func(s *robotv1.RobotSpec) { s.Strategy = nil },
			func(d appsv1.DeploymentSpec) bool {
				return d.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType
			}},
		{"no replicas", func(s *robotv1.RobotSpec) { s.Replicas = ptr.To[int32](0) },
			func(d appsv1.DeploymentSpec) bool { return *d.Replicas == 0 }},
	} {
		one = change(t, c, one, func(r *robotv1.Robot) { step.change(&r.Spec) })
		one = awaitReady(t, c, one)
		live := fleettest.Await(t, c, deployment(namespace, "one"), func(*appsv1.Deployment) string { return "" })
		if !step.check(live.Spec) {
			t.Errorf("%s: the Deployment is %+v", step.what, live.Spec)
		}
		if want := ptr.Deref(one.Spec.Replicas, 1); one.Status.AvailableReplicas != want {
			t.Errorf("%s: %d workers are available, not %d", step.what, one.Status.AvailableReplicas, want)
		}
	}
}

func TestHandEditsAreRepaired(t *testing.T) {
	t.Parallel()
	c, namespace := setUp(t)
	one := awaitReady(t, c, create(t, c, namespace, "{replicas: 2, strategy: {type: Recreate}}"))
	for what, edit := range map[string]func(*appsv1.Deployment){
		"replicas": func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](5) },
		"image":    func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "evil" },
		"strategy": func(d *appsv1.Deployment) {
			d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType}
		},
		"our label":      func(d *appsv1.Deployment) { delete(d.Labels, flow.LabelManagedBy) },
		"other labels":   func(d *appsv1.Deployment) { delete(d.Labels, flow.LabelInstance) },
		"the annotation": func(d *appsv1.Deployment) { delete(d.Annotations, flow.AppliedAnnotation) },
	} {
		want := fleettest.Await(t, c, deployment(namespace, "one"), func(*appsv1.Deployment) string { return "" })
		change(t, c, deployment(namespace, "one"), edit)
		fleettest.Await(t, c, deployment(namespace, "one"), func(d *appsv1.Deployment) string {
			if d.UID != want.UID {
				return what + ": it is another Deployment"
			}
			got := fmt.Sprintf("%+v %+v %v %v", d.Spec.Strategy, d.Spec.Template.Spec.Containers[0].Image, *d.Spec.Replicas, d.Labels)
			if expected := fmt.Sprintf("%+v %+v %v %v", want.Spec.Strategy, want.Spec.Template.Spec.Containers[0].Image, *want.Spec.Replicas, want.Labels); got != expected {
				return fmt.Sprintf("%s: got %s, want %s", what, got, expected)
			}
			if d.Annotations[flow.AppliedAnnotation] == "" {
				return "the annotation is gone"
			}
			return ""
		})
	}
	old := fleettest.Await(t, c, deployment(namespace, "one"), func(*appsv1.Deployment) string { return "" })
	if err := c.Delete(t.Context(), old.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	fleettest.Await(t, c, deployment(namespace, "one"), func(d *appsv1.Deployment) string {
		if d.UID == old.UID || d.Status.AvailableReplicas != 2 {
			return "it has not been recreated"
		}
		return ""
	})
	awaitReady(t, c, one)
}

func TestTroubleOfPodsStalls(t *testing.T) {
	t.Parallel()
	for behaviour, reason := range map[string]string{"image-pull-error": "ImagePullBackOff", "crash-loop": "CrashLoopBackOff"} {
		t.Run(behaviour, func(t *testing.T) {
			t.Parallel()
			c, namespace := setUp(t)
			one := create(t, c, namespace, "{template: {metadata: {annotations: {opdock.dev/behaviour: "+behaviour+"}}, spec: {containers: [{name: robot}]}}}")
			one = awaitStalled(t, c, one, reason)
			one = change(t, c, one, func(r *robotv1.Robot) { r.Spec.Template.Metadata = nil })
			awaitReady(t, c, one)
		})
	}
}

func TestAQuotaStalls(t *testing.T) {
	t.Parallel()
	c, namespace := setUp(t)
	quota := fleettest.Create(t, c, namespace, "{metadata: {name: pods}, spec: {hard: {pods: 1}}}", &corev1.ResourceQuota{})
	fleettest.Await(t, c, quota, func(q *corev1.ResourceQuota) string {
		if q.Status.Hard == nil {
			return "the quota is not in force"
		}
		return ""
	})
	one := awaitStalled(t, c, create(t, c, namespace, "{replicas: 2}"), "FailedCreate")
	change(t, c, quota, func(q *corev1.ResourceQuota) { q.Spec.Hard[corev1.ResourcePods] = resource.MustParse("2") })
	// The creator of the pods retries with back-off, which may take long; scaling down is possible at once.
	one = change(t, c, one, func(r *robotv1.Robot) { r.Spec.Replicas = ptr.To[int32](1) })
	awaitReady(t, c, one)
}

func TestAForeignDeploymentIsLeftAlone(t *testing.T) {
	t.Parallel()
	c, namespace := setUp(t)
	foreign := fleettest.Create(t, c, namespace, `
metadata: {name: one}
spec:
  selector: {matchLabels: {a: b}}
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: x, image: x}]}}
`, &appsv1.Deployment{})
	one := awaitStalled(t, c, create(t, c, namespace, "{}"), flow.ReasonResourceExists)
	testenv.Await(t, func() string {
		if got := notes(t, c, one, flow.ReasonResourceExists); len(got) != 1 {
			return fmt.Sprintf("the warnings are %q", got)
		}
		return ""
	})
	now := fleettest.Await(t, c, deployment(namespace, "one"), func(*appsv1.Deployment) string { return "" })
	if now.UID != foreign.UID || now.Generation != foreign.Generation || len(now.Labels) > 0 || len(now.OwnerReferences) > 0 {
		t.Errorf("it has been changed: %+v", now.ObjectMeta)
	}
	if one.Status.DeploymentName != "" {
		t.Errorf("the status names it: %q", one.Status.DeploymentName)
	}
	if err := c.Delete(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	awaitReady(t, c, one)
}

func TestSuspendLeavesEverythingAsItIs(t *testing.T) {
	t.Parallel()
	c, namespace := setUp(t)
	one := awaitReady(t, c, create(t, c, namespace, "{replicas: 2}"))
	one = change(t, c, one, func(r *robotv1.Robot) { r.Spec.Suspend, r.Spec.Replicas = true, ptr.To[int32](5) })
	one = fleettest.Await(t, c, one, func(r *robotv1.Robot) string {
		return fleettest.Condition(r.Status.Conditions, r.Generation, "Ready", metav1.ConditionUnknown, flow.ReasonSuspended)
	})
	live := fleettest.Await(t, c, deployment(namespace, "one"), func(*appsv1.Deployment) string { return "" })
	if *live.Spec.Replicas != 2 || one.Status.AvailableReplicas != 2 {
		t.Errorf("there are %d replicas, and the status says %d", *live.Spec.Replicas, one.Status.AvailableReplicas)
	}
	one = change(t, c, one, func(r *robotv1.Robot) { r.Spec.Suspend = false })
	if one = awaitReady(t, c, one); one.Status.AvailableReplicas != 5 {
		t.Errorf("%d workers are available", one.Status.AvailableReplicas)
	}
}

func TestDeletionLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			c, namespace := setUp(t)
			one := awaitReady(t, c, create(t, c, namespace, "{replicas: 2}"))
			if err := c.Delete(t.Context(), one, client.PropagationPolicy(policy)); err != nil {
				t.Fatal(err)
			}
			fleettest.AwaitGone(t, c, one)
			if policy == metav1.DeletePropagationOrphan {
				fleettest.Await(t, c, deployment(namespace, "one"), func(d *appsv1.Deployment) string {
					if len(d.OwnerReferences) > 0 || *d.Spec.Replicas != 2 {
						return "it is still owned"
					}
					return ""
				})
				return
			}
			fleettest.AwaitGone(t, c, deployment(namespace, "one"))
			testenv.Await(t, func() string {
				var pods corev1.PodList
				if err := c.List(t.Context(), &pods, client.InNamespace(namespace)); err != nil || len(pods.Items) > 0 {
					return fmt.Sprintf("%d pods are left (%v)", len(pods.Items), err)
				}
				return ""
			})
		})
	}
}
