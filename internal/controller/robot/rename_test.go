// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package robot_test

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	robotv1 "github.com/opdock/opdock/api/robot/v1"
	sharedv1 "github.com/opdock/opdock/api/shared/v1"
	"github.com/opdock/opdock/internal/fleettest"
	"github.com/opdock/opdock/internal/flow"
)

const behaviour = "opdock.dev/behaviour"

// rename gives the Deployment another name, whose pods behave as said.
func rename(t *testing.T, c client.Client, one *robotv1.Robot, name, behave string) *robotv1.Robot {
	t.Helper()
	return change(t, c, one, func(r *robotv1.Robot) {
		r.Spec.DeploymentName = name
		r.Spec.Template.Metadata = &sharedv1.PodMetadata{Annotations: map[string]string{behaviour: behave}}
	})
}

func awaitDeployment(t *testing.T, c client.Client, namespace, name string, available int32) *appsv1.Deployment {
	t.Helper()
	return fleettest.Await(t, c, deployment(namespace, name), func(d *appsv1.Deployment) string {
		if d.Status.AvailableReplicas != available {
			return fmt.Sprintf("%d pods of %s are available", d.Status.AvailableReplicas, name)
		}
		return ""
	})
}

func TestARenamedDeploymentTakesOverWhenItIsAvailable(t *testing.T) {
	t.Parallel()
	c, namespace := setUp(t)
	one := awaitReady(t, c, create(t, c, namespace, "{deploymentName: old, replicas: 2}"))
	one = rename(t, c, one, "new", "never-ready")
	// The new one is there, and so is the old one with all its pods and the status that names it.
	one = fleettest.Await(t, c, one, func(r *robotv1.Robot) string {
		if r.Status.ObservedGeneration != r.Generation || r.Status.Replicas != 4 {
			return fmt.Sprintf("there are %d workers", r.Status.Replicas)
		}
		return ""
	})
	if one.Status.DeploymentName != "old" || one.Status.AvailableReplicas != 2 || ready(one) == "" {
		t.Errorf("the status is %+v", one.Status)
	}
	expectDeployments(t, c, namespace, "new", "old")
	for _, name := range []string{"new", "old"} {
		var pods corev1.PodList
		if err := c.List(t.Context(), &pods, client.InNamespace(namespace), client.MatchingLabels{"opdock.dev/deployment": name}); err != nil || len(pods.Items) != 2 {
			t.Errorf("%s has %d pods (%v)", name, len(pods.Items), err)
		}
	}
	one = rename(t, c, one, "new", "run")
	one = awaitReady(t, c, one)
	if one.Status.DeploymentName != "new" || one.Status.AvailableReplicas != 2 || one.Status.Replicas != 2 {
		t.Errorf("the status is %+v", one.Status)
	}
	expectDeployments(t, c, namespace, "new")
}

func TestTwoRenamesInARowLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	c, namespace := setUp(t)
	one := awaitReady(t, c, create(t, c, namespace, "{deploymentName: first}"))
	one = rename(t, c, one, "second", "never-ready")
	awaitDeployment(t, c, namespace, "second", 0)
	one = rename(t, c, one, "third", "never-ready")
	// The second does no work, so it goes at once; the first does, so it stays.
	fleettest.AwaitGone(t, c, deployment(namespace, "second"))
	one = fleettest.Await(t, c, one, func(r *robotv1.Robot) string {
		if r.Status.ObservedGeneration != r.Generation || r.Status.DeploymentName != "first" || r.Status.AvailableReplicas != 1 {
			return fmt.Sprintf("the status is %+v", r.Status)
		}
		return ""
	})
	awaitDeployment(t, c, namespace, "first", 1)
	one = rename(t, c, one, "third", "run")
	one = awaitReady(t, c, one)
	expectDeployments(t, c, namespace, "third")
	// And back: a name that was used before is as good as any other.
	one = awaitReady(t, c, rename(t, c, one, "first", "run"))
	expectDeployments(t, c, namespace, "first")
	if one.Status.DeploymentName != "first" {
		t.Errorf("the status names %q", one.Status.DeploymentName)
	}
}

func TestARenameTakenBackKeepsTheOldDeployment(t *testing.T) {
	t.Parallel()
	c, namespace := setUp(t)
	one := awaitReady(t, c, create(t, c, namespace, "{deploymentName: old}"))
	before := awaitDeployment(t, c, namespace, "old", 1)
	one = rename(t, c, one, "new", "never-ready")
	awaitDeployment(t, c, namespace, "new", 0)
	one = change(t, c, one, func(r *robotv1.Robot) { r.Spec.DeploymentName, r.Spec.Template.Metadata = "old", nil })
	awaitReady(t, c, one)
	expectDeployments(t, c, namespace, "old")
	if after := awaitDeployment(t, c, namespace, "old", 1); after.UID != before.UID || after.Generation != before.Generation {
		t.Error("the old Deployment is another one, or was changed")
	}
}

func TestARenameToATakenNameKeepsTheOldDeployment(t *testing.T) {
	t.Parallel()
	c, namespace := setUp(t)
	fleettest.Create(t, c, namespace, `
metadata: {name: taken}
spec:
  selector: {matchLabels: {a: b}}
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: x, image: x}]}}
`, &appsv1.Deployment{})
	one := awaitReady(t, c, create(t, c, namespace, "{deploymentName: old}"))
	one = awaitStalled(t, c, rename(t, c, one, "taken", "run"), flow.ReasonResourceExists)
	if one.Status.DeploymentName != "old" || one.Status.AvailableReplicas != 1 {
		t.Errorf("the status is %+v", one.Status)
	}
	// The taken one was another Robot's: it gets out of the way.
	if err := c.Delete(t.Context(), deployment(namespace, "taken")); err != nil {
		t.Fatal(err)
	}
	awaitReady(t, c, one)
	expectDeployments(t, c, namespace, "taken")
}
