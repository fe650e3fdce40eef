// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package robot_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	robotv1 "github.com/opdock/opdock/api/robot/v1"
	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/controller"
	"github.com/opdock/opdock/internal/fleettest"
	"github.com/opdock/opdock/internal/flow"
	"github.com/opdock/opdock/internal/manager"
	"github.com/opdock/opdock/internal/testenv"
)

// TestAnyCrashPointIsFine ends the manager after each single write of what it does, and lets another one go on.
func TestAnyCrashPointIsFine(t *testing.T) {
	t.Parallel()
	for what, step := range map[string]struct {
		before string
		act    func(t *testing.T, c client.Client, namespace string)
		// meanwhile is what happens while no manager runs.
		meanwhile func(*robotv1.RobotSpec)
		// writes is how many there are at least, so that the test cannot end early by mistake.
		writes int
		want   []string
	}{
		"create": {
			act: func(t *testing.T, c client.Client, namespace string) {
				t.Helper()
				create(t, c, namespace, "{replicas: 2}")
			},
			writes: 2, want: []string{"one"},
		},
		"update": {
			before: "{replicas: 2}",
			act: func(t *testing.T, c client.Client, namespace string) {
				t.Helper()
				change(t, c, robot(namespace, "one"), func(r *robotv1.Robot) {
					r.Spec.Image, r.Spec.Strategy = "nginx:2", strategy(appsv1.RecreateDeploymentStrategyType)
				})
			},
			writes: 3, want: []string{"one"},
		},
		"rename": {
			before: "{replicas: 2}",
			act: func(t *testing.T, c client.Client, namespace string) {
				t.Helper()
				change(t, c, robot(namespace, "one"), func(r *robotv1.Robot) { r.Spec.DeploymentName = "two" })
			},
			writes: 3, want: []string{"two"},
		},
		"rename twice": {
			before: "{replicas: 2}",
			act: func(t *testing.T, c client.Client, namespace string) {
				t.Helper()
				change(t, c, robot(namespace, "one"), func(r *robotv1.Robot) { r.Spec.DeploymentName = "two" })
			},
			meanwhile: func(spec *robotv1.RobotSpec) { spec.DeploymentName = "three" },
			writes:    3, want: []string{"three"},
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c, config := fleettest.Client(t), fleettest.Config(t)
			for after := 1; ; after++ {
				namespace := clustertest.Namespace(t)
				if step.before != "" {
					create(t, c, namespace, step.before)
					stop := run(t, config, namespace)
					awaitReady(t, c, robot(namespace, "one"))
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
					one := robot(namespace, "one")
					if err := c.Get(t.Context(), client.ObjectKeyFromObject(one), one); err != nil {
						return err.Error()
					}
					return ready(one)
				})
				stop()
				if !isClosed(cut) {
					if after <= step.writes {
						t.Errorf("there were only %q", wire.Writes())
					}
					return
				}
				if step.meanwhile != nil {
					change(t, c, robot(namespace, "one"), func(r *robotv1.Robot) { step.meanwhile(&r.Spec) })
				}
				stop = run(t, config, namespace)
				one := awaitReady(t, c, robot(namespace, "one"))
				stop()
				expectDeployments(t, c, namespace, step.want...)
				if one.Status.DeploymentName != step.want[0] || one.Status.AvailableReplicas != 2 || one.Status.Replicas != 2 {
					t.Errorf("after %q the status is %+v", wire.Writes(), one.Status)
				}
			}
		})
	}
}

// TestDeletionIsNoWorkForTheManager: garbage collection does all of it, so there is no write that could be cut off.
func TestDeletionIsNoWorkForTheManager(t *testing.T) {
	t.Parallel()
	c, namespace := fleettest.Client(t), clustertest.Namespace(t)
	wire, config := fleettest.NewWire(fleettest.Config(t))
	run(t, config, namespace)
	one := awaitReady(t, c, create(t, c, namespace, "{}"))
	before := len(wire.Writes())
	if err := c.Delete(t.Context(), one, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		t.Fatal(err)
	}
	fleettest.AwaitGone(t, c, one)
	fleettest.AwaitGone(t, c, deployment(namespace, "one"))
	if writes := wire.Writes(); len(writes) != before {
		t.Errorf("the manager has written %q", writes[before:])
	}
}

// TestAConvergedRobotIsNotWritten counts looks, so it runs alone.
func TestAConvergedRobotIsNotWritten(t *testing.T) {
	c, namespace := fleettest.Client(t), clustertest.Namespace(t)
	stop := run(t, fleettest.Config(t), namespace)
	awaitReady(t, c, create(t, c, namespace, "{replicas: 2, strategy: {type: Recreate}}"))
	awaitReady(t, c, fleettest.Create(t, c, namespace, "{metadata: {name: two}, spec: {deploymentName: other}}", &robotv1.Robot{}))
	stop()

	wire, config := fleettest.NewWire(fleettest.Config(t))
	before := fleettest.Looks(t, "Robot")
	stop = run(t, config, namespace)
	testenv.Await(t, func() string {
		if fleettest.Looks(t, "Robot") < before+2 {
			return "not all Robots were looked at"
		}
		return ""
	})
	// A label that is not ours makes the manager look once more.
	change(t, c, deployment(namespace, "one"), func(d *appsv1.Deployment) { d.Labels["example.com/note"] = "hello" })
	testenv.Await(t, func() string {
		if fleettest.Looks(t, "Robot") < before+3 {
			return "the Robot was not looked at again"
		}
		return ""
	})
	stop()
	if writes := wire.AllWrites(); len(writes) > 0 {
		t.Errorf("it has written %q", writes)
	}
}

// TestWhatNoSchemaWouldAllowStalls changes the schema, so it runs alone.
func TestWhatNoSchemaWouldAllowStalls(t *testing.T) {
	c, namespace := setUp(t)
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"image": " ", "template": map[string]any{"spec": map[string]any{"containers": []any{}}},
	}}}
	object.SetGroupVersionKind(robots.GroupVersionKind)
	object.SetNamespace(namespace)
	object.SetName("one")
	fleettest.CreateUnchecked(t, c, robots, object)
	one := awaitStalled(t, c, robot(namespace, "one"), flow.ReasonInvalid)
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "one"}, &appsv1.Deployment{}); !apierrors.IsNotFound(err) {
		t.Errorf("there is a Deployment: %v", err)
	}
	// Without what the schema fills in, the defaults are the same.
	one = change(t, c, one, func(r *robotv1.Robot) { r.Spec = robotv1.RobotSpec{Replicas: ptr.To[int32](1)} })
	awaitReady(t, c, one)
	live := awaitDeployment(t, c, namespace, "one", 1)
	if container := live.Spec.Template.Spec.Containers[0]; container.Name != "robot" || container.Image != "nginx:1.29" {
		t.Errorf("the container is %s with image %s", container.Name, container.Image)
	}
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
			options := manager.Options{Kinds: []controller.Kind{robots}}
			if limited {
				options.Namespaces = namespaces
			}
			fleettest.Run(t, fleettest.Config(t), options)
			for _, namespace := range namespaces {
				one := awaitReady(t, c, create(t, c, namespace, "{deploymentName: first}"))
				change(t, c, one, func(r *robotv1.Robot) { r.Spec.DeploymentName = "second" })
				awaitReady(t, c, one)
				expectDeployments(t, c, namespace, "second")
			}
		})
	}
}
