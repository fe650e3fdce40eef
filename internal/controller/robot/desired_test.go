// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package robot

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	robotv1 "github.com/opdock/opdock/api/robot/v1"
	sharedv1 "github.com/opdock/opdock/api/shared/v1"
	"github.com/opdock/opdock/internal/flow"
)

func TestTheDeploymentThatARobotAsksFor(t *testing.T) {
	robot := &robotv1.Robot{
		ObjectMeta: metav1.ObjectMeta{Namespace: "factory", Name: "welder"},
		Spec: robotv1.RobotSpec{
			DeploymentName: "workers", Replicas: ptr.To[int32](3), Image: "weld:1",
			Template: &sharedv1.PodTemplate{
				Metadata: &sharedv1.PodMetadata{Labels: map[string]string{"line": "a", labelDeployment: "somebody-else"}},
				Spec:     sharedv1.PodSpec{Containers: []sharedv1.Container{{Name: "own", Image: "own:1"}, {Name: "none"}}},
			},
		},
	}
	before := robot.DeepCopy()
	got, err := deployment(robot)
	if err != nil {
		t.Fatal(err)
	}
	if *got.Name != "workers" || *got.Spec.Replicas != 3 {
		t.Errorf("it is %s with %d replicas", *got.Name, *got.Spec.Replicas)
	}
	want := map[string]string{"app.kubernetes.io/name": "robot", "app.kubernetes.io/instance": "welder", labelDeployment: "workers"}
	for key, value := range want {
		if got.Spec.Selector.MatchLabels[key] != value || got.Spec.Template.Labels[key] != value {
			t.Errorf("label %s is %q in the selector and %q in the template", key, got.Spec.Selector.MatchLabels[key], got.Spec.Template.Labels[key])
		}
	}
	if len(got.Spec.Selector.MatchLabels) != len(want) || got.Spec.Template.Labels["line"] != "a" {
		t.Errorf("the selector is %v and the labels %v", got.Spec.Selector.MatchLabels, got.Spec.Template.Labels)
	}
	if containers := got.Spec.Template.Spec.Containers; *containers[0].Image != "own:1" || *containers[1].Image != "weld:1" {
		t.Errorf("the images are %s and %s", *containers[0].Image, *containers[1].Image)
	}
	if !equality.Semantic.DeepEqual(robot, before) {
		t.Errorf("the Robot has been changed from %+v to %+v", before, robot)
	}
}

func TestWhichDeploymentDoesTheWork(t *testing.T) {
	rolledOut := func(name string, available int32) appsv1.Deployment {
		return appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{flow.LabelManagedBy: flow.ManagedBy}},
			Spec:       appsv1.DeploymentSpec{Replicas: ptr.To[int32](2)},
			Status:     appsv1.DeploymentStatus{Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: available, AvailableReplicas: available},
		}
	}
	hidden := rolledOut("a", 2)
	hidden.Labels = nil
	for name, test := range map[string]struct {
		status       string
		deployment   *appsv1.Deployment
		predecessors []appsv1.Deployment
		want         string
		overtaken    []string
		available    int32
	}{
		"nothing is there":                        {},
		"the only one, on its way":                {deployment: ptr.To(rolledOut("a", 0)), want: "a"},
		"the new one is on its way":               {"a", ptr.To(rolledOut("b", 1)), []appsv1.Deployment{rolledOut("a", 2)}, "a", nil, 3},
		"the new one has taken over":              {"a", ptr.To(rolledOut("b", 2)), []appsv1.Deployment{rolledOut("a", 2)}, "b", nil, 4},
		"it has, but the cache has lost the old":  {"a", ptr.To(rolledOut("b", 2)), []appsv1.Deployment{hidden}, "a", nil, 4},
		"the new one could not be made":           {"a", nil, []appsv1.Deployment{rolledOut("a", 2)}, "a", nil, 2},
		"the one that worked has no worker":       {"a", ptr.To(rolledOut("b", 0)), []appsv1.Deployment{rolledOut("a", 0)}, "a", nil, 0},
		"one in between does no work":             {"a", ptr.To(rolledOut("c", 0)), []appsv1.Deployment{rolledOut("a", 2), rolledOut("b", 0)}, "a", []string{"b"}, 2},
		"one in between does some":                {"a", ptr.To(rolledOut("c", 0)), []appsv1.Deployment{rolledOut("a", 2), rolledOut("b", 1)}, "a", nil, 3},
		"the one that worked was deleted by hand": {"a", ptr.To(rolledOut("c", 0)), []appsv1.Deployment{rolledOut("b", 1)}, "b", nil, 1},
		"the status does not name it":             {"", ptr.To(rolledOut("c", 0)), []appsv1.Deployment{rolledOut("a", 1), rolledOut("b", 1)}, "a", nil, 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scope{
				robot:      &robotv1.Robot{Status: robotv1.RobotStatus{DeploymentName: test.status, AvailableReplicas: 99}},
				deployment: test.deployment, predecessors: test.predecessors,
			}
			var removed []string
			for i := range s.predecessors {
				if overtaken(s.robot, &s.predecessors[i]) {
					removed = append(removed, s.predecessors[i].Name)
				}
			}
			setStatus(s)
			if status := s.robot.Status; status.DeploymentName != test.want || status.AvailableReplicas != test.available {
				t.Errorf("the status names %q with %d available, not %q with %d", status.DeploymentName, status.AvailableReplicas, test.want, test.available)
			}
			if fmt.Sprint(removed) != fmt.Sprint(test.overtaken) {
				t.Errorf("overtaken are %q, not %q", removed, test.overtaken)
			}
		})
	}
}

func TestWorkersOfTheOldSpecAreNotUpdated(t *testing.T) {
	for observed, want := range map[int64]int32{3: 0, 4: 2} {
		s := &scope{robot: &robotv1.Robot{}, deployment: &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Generation: 4},
			Status:     appsv1.DeploymentStatus{ObservedGeneration: observed, Replicas: 2, UpdatedReplicas: 2},
		}}
		setStatus(s)
		if got := s.robot.Status; got.UpdatedReplicas != want || got.Replicas != 2 {
			t.Errorf("generation 4, of which %d is observed: %d of %d are updated, want %d", observed, got.UpdatedReplicas, got.Replicas, want)
		}
	}
}
