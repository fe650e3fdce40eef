// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/opdock/opdock/internal/controller"
)

func TestDescribe(t *testing.T) {
	ready := []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	waiting := func(reason, message string) []corev1.ContainerStatus {
		return []corev1.ContainerStatus{{
			RestartCount: 2, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
		}}
	}
	two := ptr.To[int32](2)
	for name, test := range map[string]struct {
		object client.Object
		state  State
		status string
		detail string
	}{
		"deployment in progress": {&appsv1.Deployment{
			Spec: appsv1.DeploymentSpec{Replicas: two}, Status: appsv1.DeploymentStatus{Replicas: 3, UpdatedReplicas: 1, AvailableReplicas: 2},
		}, Busy, "2/2 available, 1 updated", ""},
		"deployment there": {&appsv1.Deployment{
			Spec: appsv1.DeploymentSpec{Replicas: two}, Status: appsv1.DeploymentStatus{Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 2},
		}, Good, "2/2 available", ""},
		"deployment changed": {&appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Generation: 2}, Spec: appsv1.DeploymentSpec{Replicas: two},
			Status: appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 2},
		}, Busy, "2/2 available", ""},
		"deployment past its deadline": {&appsv1.Deployment{
			Spec: appsv1.DeploymentSpec{Replicas: two}, Status: appsv1.DeploymentStatus{Replicas: 2, UpdatedReplicas: 2, Conditions: []appsv1.DeploymentCondition{
				{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded", Message: "timed out"},
			}},
		}, Bad, "0/2 available", "timed out"},
		"replica set": {&appsv1.ReplicaSet{
			Spec: appsv1.ReplicaSetSpec{Replicas: two}, Status: appsv1.ReplicaSetStatus{Replicas: 2, ReadyReplicas: 1},
		}, Busy, "1/2 ready", ""},
		"replica set over quota": {&appsv1.ReplicaSet{
			Spec: appsv1.ReplicaSetSpec{Replicas: two}, Status: appsv1.ReplicaSetStatus{Conditions: []appsv1.ReplicaSetCondition{
				{Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: "exceeded quota"},
			}},
		}, Bad, "0/2 ready", "exceeded quota"},
		"stateful set": {&appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: two}, Status: appsv1.StatefulSetStatus{Replicas: 2, ReadyReplicas: 2}}, Good, "2/2 ready", ""},
		"stateful set that starts": {&appsv1.StatefulSet{
			Spec: appsv1.StatefulSetSpec{Replicas: two}, Status: appsv1.StatefulSetStatus{Replicas: 1, ReadyReplicas: 1, CurrentRevision: "a", UpdateRevision: "a"},
		}, Busy, "1/2 ready", ""},
		"stateful set that rolls out": {&appsv1.StatefulSet{
			Spec: appsv1.StatefulSetSpec{Replicas: two}, Status: appsv1.StatefulSetStatus{Replicas: 2, ReadyReplicas: 2, UpdatedReplicas: 1, CurrentRevision: "a", UpdateRevision: "b"},
		}, Busy, "2/2 ready, 1 updated", ""},
		"stateful set at its partition": {&appsv1.StatefulSet{
			Spec: appsv1.StatefulSetSpec{Replicas: two, UpdateStrategy: appsv1.StatefulSetUpdateStrategy{
				RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: ptr.To[int32](1)},
			}},
			Status: appsv1.StatefulSetStatus{Replicas: 2, ReadyReplicas: 2, UpdatedReplicas: 1, CurrentRevision: "a", UpdateRevision: "b"},
		}, Good, "2/2 ready", ""},
		"stateful set with old pods by request": {&appsv1.StatefulSet{
			Spec:   appsv1.StatefulSetSpec{Replicas: two, UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}},
			Status: appsv1.StatefulSetStatus{Replicas: 2, ReadyReplicas: 2, CurrentRevision: "a", UpdateRevision: "b"},
		}, Good, "2/2 ready", ""},
		"stateful set changed": {&appsv1.StatefulSet{
			ObjectMeta: metav1.ObjectMeta{Generation: 2}, Spec: appsv1.StatefulSetSpec{Replicas: two}, Status: appsv1.StatefulSetStatus{ObservedGeneration: 1, Replicas: 2, ReadyReplicas: 2},
		}, Busy, "2/2 ready", ""},
		"daemon set":                {&appsv1.DaemonSet{Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: 3, UpdatedNumberScheduled: 3, NumberAvailable: 3}}, Good, "3/3 available", ""},
		"daemon set that rolls out": {&appsv1.DaemonSet{Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: 3, UpdatedNumberScheduled: 1, NumberAvailable: 3}}, Busy, "3/3 available, 1 updated", ""},
		"job":                       {&batchv1.Job{Spec: batchv1.JobSpec{Completions: two}, Status: batchv1.JobStatus{Active: 1, Succeeded: 1, Failed: 1}}, Busy, "1/2 succeeded, 1 failed", ""},
		"job of a queue":            {&batchv1.Job{Status: batchv1.JobStatus{Active: 1}}, Busy, "1 active", ""},
		"job completed":             {&batchv1.Job{Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}}}, Good, "Completed", ""},
		"job suspended":             {&batchv1.Job{Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobSuspended, Status: corev1.ConditionTrue}}}}, Plain, "Suspended", ""},
		"job resumed":               {&batchv1.Job{Status: batchv1.JobStatus{Active: 1, Conditions: []batchv1.JobCondition{{Type: batchv1.JobSuspended, Status: corev1.ConditionFalse}}}}, Busy, "1 active", ""},
		"job failed": {&batchv1.Job{Status: batchv1.JobStatus{Failed: 2, Conditions: []batchv1.JobCondition{
			{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: "BackoffLimitExceeded", Message: "too often"},
		}}}, Bad, "0 active, 2 failed", "too often"},
		"claim":         {&corev1.PersistentVolumeClaim{Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}}, Good, "Bound", ""},
		"claim new":     {&corev1.PersistentVolumeClaim{}, Plain, "Pending", ""},
		"claim lost":    {&corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "v"}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimLost}}, Bad, "Lost", "its volume v does not exist"},
		"pod new":       {&corev1.Pod{}, Busy, "Pending", ""},
		"pod scheduled": {&corev1.Pod{Spec: corev1.PodSpec{NodeName: "n"}, Status: corev1.PodStatus{Phase: corev1.PodPending}}, Busy, "Pending", "on n"},
		"pod running":   {&corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning}}, Busy, "Running, not ready", ""},
		"pod ready":     {&corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: ready}}, Good, "Running", ""},
		"pod completed": {&corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodSucceeded}}, Plain, "Completed", ""},
		"pod crashing": {&corev1.Pod{Status: corev1.PodStatus{
			Phase: corev1.PodRunning, ContainerStatuses: waiting("CrashLoopBackOff", "back-off 10s"),
		}}, Bad, "CrashLoopBackOff, 2 restarts", "back-off 10s"},
		"pod going": {&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{Time: noon}}, Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: ready},
		}, Busy, "Deleting", ""},
		"service": {&corev1.Service{Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeNodePort, ClusterIP: "10.0.0.1", Ports: []corev1.ServicePort{{Port: 80, NodePort: 30002}, {Port: 53, Protocol: corev1.ProtocolUDP}},
		}}, Plain, "NodePort 80:30002, 53/UDP", "at 10.0.0.1"},
		"service headless": {&corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ClusterIP: "None"}}, Plain, "Headless", ""},
		"config map":       {&corev1.ConfigMap{Data: map[string]string{"a": ""}, BinaryData: map[string][]byte{"b": nil}}, Plain, "2 keys", ""},
		"autoscaler": {&autoscalingv2.HorizontalPodAutoscaler{
			Spec: autoscalingv2.HorizontalPodAutoscalerSpec{MinReplicas: two, MaxReplicas: 6},
			Status: autoscalingv2.HorizontalPodAutoscalerStatus{Conditions: []autoscalingv2.HorizontalPodAutoscalerCondition{
				{Type: autoscalingv2.ScalingActive, Status: corev1.ConditionFalse, Reason: "FailedGetResourceMetric"},
			}},
		}, Plain, "2 to 6 pods", "FailedGetResourceMetric"},
		"ingress": {&networkingv1.Ingress{Spec: networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{Host: "a.example"}, {Host: "b.example"}}}}, Plain, "a.example, b.example", ""},
		"budget":  {&policyv1.PodDisruptionBudget{Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: 1}}, Plain, "1 disruption allowed", ""},
		"policy":  {&networkingv1.NetworkPolicy{Spec: networkingv1.NetworkPolicySpec{Ingress: []networkingv1.NetworkPolicyIngressRule{{}, {}}}}, Plain, "2 ingress rules", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := Describe(test.object, schema.GroupVersionKind{})
			if got.State != test.state || got.Status != test.status || got.Detail != test.detail {
				t.Errorf("got %d %q %q, want %d %q %q", got.State, got.Status, got.Detail, test.state, test.status, test.detail)
			}
		})
	}
}

func TestDescribeMarksWhatIsKeptOnlyToGoBackTo(t *testing.T) {
	empty := &appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To[int32](0)}}
	leaving := &appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To[int32](0)}, Status: appsv1.ReplicaSetStatus{Replicas: 1}}
	for object, want := range map[client.Object]bool{empty: true, leaving: false, &appsv1.ControllerRevision{}: true} {
		if got := Describe(object, schema.GroupVersionKind{}).Spent; got != want {
			t.Errorf("%T: got %v, want %v", object, got, want)
		}
	}
}

func TestDescribeFleet(t *testing.T) {
	definitions, err := controller.CRDs(controller.Kinds[:1])
	if err != nil {
		t.Fatal(err)
	}
	columns, err := ColumnsOf(definitions[0], controller.Kinds[0].Version)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		status string // as YAML
		state  State
		why    string
		detail string
	}{
		"new":       {`{}`, Busy, "New: no controller has written its status yet", "size 2"},
		"outdated":  {`{conditions: [{type: Ready, status: "True", observedGeneration: 2}]}`, Busy, "Changed: its status describes an earlier spec", "size 2"},
		"ready":     {`{availableReplicas: 2, url: "http://web", conditions: [{type: Ready, status: "True", observedGeneration: 3}]}`, Good, "Ready", "size 2, available 2, http://web"},
		"waiting":   {`{conditions: [{type: Ready, status: "False", reason: RollingOut, message: wait, observedGeneration: 3}]}`, Busy, "Reconciling (RollingOut): wait", "size 2"},
		"suspended": {`{conditions: [{type: Ready, status: Unknown, reason: Suspended, message: asleep, observedGeneration: 3}]}`, Paused, "Suspended: asleep", "size 2"},
		"stalled": {`{conditions: [{type: Ready, status: "False", reason: R, message: m, observedGeneration: 3},
			{type: Stalled, status: "True", reason: Why, message: because, observedGeneration: 3}]}`, Bad, "Stalled (Why): because", "size 2"},
		"nonsense": {`{conditions: [3, {type: 5}]}`, Busy, "New: no controller has written its status yet", "size 2"},
	} {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{}
			manifest := "apiVersion: app.example.com/v1\nkind: AppService\nmetadata: {name: web, uid: u, generation: 3, ownerReferences: [{uid: a}, {uid: b, controller: true}]}\nspec: {size: 2}\nstatus: " + test.status
			if err := yaml.Unmarshal([]byte(strings.ReplaceAll(manifest, "\t", "  ")), object); err != nil {
				t.Fatal(err)
			}
			got := DescribeFleet(object, controller.Kinds[0].GroupVersionKind, columns)
			if got.State != test.state || got.Why() != test.why || got.Detail != test.detail {
				t.Errorf("got %d %q %q, want %d %q %q", got.State, got.Why(), got.Detail, test.state, test.why, test.detail)
			}
			if len(got.Owners) != 2 || got.Owners[0] != "b" {
				t.Errorf("the controller is not the first owner: %v", got.Owners)
			}
		})
	}
}

func TestEveryKindHasColumns(t *testing.T) {
	definitions, err := controller.CRDs(controller.Kinds)
	if err != nil {
		t.Fatal(err)
	}
	for i, kind := range controller.Kinds {
		columns, err := ColumnsOf(definitions[i], kind.Version)
		if err != nil || len(columns) == 0 {
			t.Errorf("%s: %d columns, %v", kind.Kind, len(columns), err)
		}
		for _, column := range columns {
			if shownElsewhere[column.name] {
				t.Errorf("%s: column %s is shown twice", kind.Kind, column.name)
			}
		}
	}
}
