// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

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

	"github.com/opdock/opdock/internal/health"
)

// DescribeFleet describes the state of an object of the fleet in a few words.
func DescribeFleet(object client.Object, gvk schema.GroupVersionKind, columns Columns) Object {
	o := Describe(object, gvk)
	o.Fleet = true
	if object, ok := object.(*unstructured.Unstructured); ok {
		o.Detail = columns.describe(object)
	}
	return o
}

// Describe describes the state of an object in a few words. Objects of Kubernetes' own kinds must be Go types.
func Describe(object client.Object, gvk schema.GroupVersionKind) Object {
	o := Object{
		Group: gvk.Group, Kind: gvk.Kind, Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(),
		Created: object.GetCreationTimestamp().Time, Generation: object.GetGeneration(), Deleting: !object.GetDeletionTimestamp().IsZero(),
	}
	if controller := metav1.GetControllerOfNoCopy(object); controller != nil {
		o.Owners = append(o.Owners, controller.UID)
	}
	for _, owner := range object.GetOwnerReferences() {
		if !slices.Contains(o.Owners, owner.UID) {
			o.Owners = append(o.Owners, owner.UID)
		}
	}
	o.describe(object)
	o.Conditions = conditionsIn(object)
	if o.Deleting {
		o.State, o.Status = Busy, "Deleting"
	}
	return o
}

func (o *Object) describe(object client.Object) {
	switch object := object.(type) {
	case *appsv1.Deployment:
		o.describeDeployment(object)
	case *appsv1.ReplicaSet:
		o.describeReplicaSet(object)
	case *appsv1.StatefulSet:
		o.describeStatefulSet(object)
	case *appsv1.DaemonSet:
		o.describeDaemonSet(object)
	case *batchv1.Job:
		o.describeJob(object)
	case *corev1.PersistentVolumeClaim:
		o.describeClaim(object)
	case *appsv1.ControllerRevision:
		o.Spent = true
	case *corev1.Pod:
		o.describePod(object)
	case *corev1.Service:
		o.describeService(object)
	case *corev1.ConfigMap:
		o.Status = Plural(len(object.Data)+len(object.BinaryData), "key")
	case *autoscalingv2.HorizontalPodAutoscaler:
		o.describeAutoscaler(object)
	case *networkingv1.Ingress:
		var hosts []string
		for _, rule := range object.Spec.Rules {
			hosts = append(hosts, rule.Host)
		}
		o.Status = strings.Join(slices.Compact(hosts), ", ")
	case *policyv1.PodDisruptionBudget:
		o.Status = Plural(int(object.Status.DisruptionsAllowed), "disruption") + " allowed"
	case *networkingv1.NetworkPolicy:
		o.Status = Plural(len(object.Spec.Ingress), "ingress rule")
	case *unstructured.Unstructured:
		o.describeStatus(object)
	}
}

func (o *Object) describeDeployment(d *appsv1.Deployment) {
	want, status := ptr.Deref(d.Spec.Replicas, 1), d.Status
	o.State = Busy
	o.Status = fmt.Sprintf("%d/%d available", status.AvailableReplicas, want)
	if status.UpdatedReplicas != want || status.Replicas != want {
		o.Status += fmt.Sprintf(", %d updated", status.UpdatedReplicas)
	}
	if status.ObservedGeneration >= d.Generation && status.UpdatedReplicas == want && status.Replicas == want && status.AvailableReplicas == want {
		o.State = Good
		return
	}
	for _, condition := range d.Status.Conditions {
		failed := condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue ||
			condition.Type == appsv1.DeploymentProgressing && condition.Status == corev1.ConditionFalse
		if failed {
			o.State, o.Reason, o.Detail = Bad, condition.Reason, condition.Message
		}
	}
}

func (o *Object) describeReplicaSet(r *appsv1.ReplicaSet) {
	want := ptr.Deref(r.Spec.Replicas, 1)
	o.Spent = want == 0 && r.Status.Replicas == 0
	o.Status = fmt.Sprintf("%d/%d ready", r.Status.ReadyReplicas, want)
	o.State = Busy
	if r.Status.ReadyReplicas == want && r.Status.Replicas == want {
		o.State = Good
	}
	for _, condition := range r.Status.Conditions {
		if condition.Type == appsv1.ReplicaSetReplicaFailure && condition.Status == corev1.ConditionTrue {
			o.State, o.Reason, o.Detail = Bad, condition.Reason, condition.Message
		}
	}
}

func (o *Object) describePod(pod *corev1.Pod) {
	if pod.Spec.NodeName != "" {
		o.Detail = "on " + pod.Spec.NodeName
	}
	trouble := health.TroubleOf(pod)
	switch {
	case trouble != nil:
		o.State, o.Status, o.Reason, o.Detail = Bad, trouble.Reason, trouble.Reason, trouble.Message
	case pod.Status.Phase == corev1.PodSucceeded:
		o.State, o.Status = Plain, "Completed"
	case health.IsReady(pod):
		o.State, o.Status = Good, "Running"
	case pod.Status.Phase == corev1.PodRunning:
		o.State, o.Status = Busy, "Running, not ready"
	default:
		o.State, o.Status = Busy, string(pod.Status.Phase)
	}
	if o.Status == "" {
		o.Status = string(corev1.PodPending)
	}
	restarts := int32(0)
	for _, container := range pod.Status.ContainerStatuses {
		restarts += container.RestartCount
	}
	if restarts > 0 {
		o.Status += ", " + Plural(int(restarts), "restart")
	}
}

func (o *Object) describeService(service *corev1.Service) {
	o.Status = string(service.Spec.Type)
	if service.Spec.ClusterIP == corev1.ClusterIPNone {
		o.Status = "Headless"
	}
	var ports []string
	for _, port := range service.Spec.Ports {
		text := strconv.Itoa(int(port.Port))
		if port.NodePort != 0 {
			text += fmt.Sprintf(":%d", port.NodePort)
		}
		if port.Protocol != "" && port.Protocol != corev1.ProtocolTCP {
			text += "/" + string(port.Protocol)
		}
		ports = append(ports, text)
	}
	o.Status = strings.TrimSpace(o.Status + " " + strings.Join(ports, ", "))
	if ip := service.Spec.ClusterIP; ip != "" && ip != corev1.ClusterIPNone {
		o.Detail = "at " + ip
	}
}

func (o *Object) describeAutoscaler(a *autoscalingv2.HorizontalPodAutoscaler) {
	o.Status = fmt.Sprintf("%d to %d pods", ptr.Deref(a.Spec.MinReplicas, 1), a.Spec.MaxReplicas)
	for _, condition := range a.Status.Conditions {
		// Without metrics, the autoscaler does not change the number of pods. This is not an error: simulated pods
		// have none.
		if condition.Type == autoscalingv2.ScalingActive && condition.Status == corev1.ConditionFalse {
			o.Detail = condition.Reason
		}
	}
}
