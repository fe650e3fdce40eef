// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

func (o *Object) describeStatefulSet(s *appsv1.StatefulSet) {
	want, status := ptr.Deref(s.Spec.Replicas, 1), s.Status
	o.State = Busy
	o.Status = fmt.Sprintf("%d/%d ready", status.ReadyReplicas, want)
	// With a partition, or if its pods are updated when they are deleted, old pods stay.
	updated := want
	switch rolling := s.Spec.UpdateStrategy.RollingUpdate; {
	case s.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType:
		updated = 0
	case rolling != nil:
		updated = max(want-ptr.Deref(rolling.Partition, 0), 0)
	}
	if status.CurrentRevision == status.UpdateRevision {
		updated = 0 // the controller stops counting when all are
	}
	if status.UpdatedReplicas < updated {
		o.Status += fmt.Sprintf(", %d updated", status.UpdatedReplicas)
		return
	}
	if status.ObservedGeneration >= s.Generation && status.Replicas == want && status.ReadyReplicas == want {
		o.State = Good
	}
}

func (o *Object) describeDaemonSet(d *appsv1.DaemonSet) {
	want, status := d.Status.DesiredNumberScheduled, d.Status
	o.State = Busy
	o.Status = fmt.Sprintf("%d/%d available", status.NumberAvailable, want)
	updated := status.UpdatedNumberScheduled == want || d.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType
	if !updated {
		o.Status += fmt.Sprintf(", %d updated", status.UpdatedNumberScheduled)
	}
	if updated && status.ObservedGeneration >= d.Generation && status.NumberAvailable == want {
		o.State = Good
	}
}

func (o *Object) describeJob(j *batchv1.Job) {
	o.State = Busy
	o.Status = fmt.Sprintf("%d active", j.Status.Active)
	if completions := j.Spec.Completions; completions != nil {
		o.Status = fmt.Sprintf("%d/%d succeeded", j.Status.Succeeded, *completions)
	}
	if j.Status.Failed > 0 {
		o.Status += fmt.Sprintf(", %d failed", j.Status.Failed)
	}
	for _, condition := range j.Status.Conditions {
		if condition.Status != corev1.ConditionTrue {
			continue
		}
		switch condition.Type {
		case batchv1.JobComplete:
			o.State, o.Status = Good, "Completed"
		case batchv1.JobFailed:
			o.State, o.Reason, o.Detail = Bad, condition.Reason, condition.Message
		case batchv1.JobSuspended:
			o.State, o.Status = Plain, "Suspended"
		}
	}
}

func (o *Object) describeClaim(c *corev1.PersistentVolumeClaim) {
	o.Status = string(c.Status.Phase)
	switch c.Status.Phase {
	case corev1.ClaimBound:
		o.State = Good
	case corev1.ClaimLost:
		o.State, o.Detail = Bad, "its volume "+c.Spec.VolumeName+" does not exist"
	default:
		// It may wait for its first pod for as long as there is none.
		o.State, o.Status = Plain, string(corev1.ClaimPending)
	}
}
