// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"cmp"
	"errors"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	sharedv1 "github.com/opdock/opdock/api/shared/v1"
)

// maxMessage is what metav1.Condition allows.
const maxMessage = 32768

// setConditions sets Ready, Reconciling and Stalled from the outcome of a reconcile. As kstatus defines,
// Reconciling and Stalled are present only while they are true.
func setConditions(conditions *[]metav1.Condition, generation int64, err error) {
	ready := metav1.Condition{Type: sharedv1.ConditionReady, Status: metav1.ConditionFalse, ObservedGeneration: generation}
	abnormal := ""
	var (
		wait  *waiting
		stall *stalled
	)
	switch {
	case err == nil:
		ready.Status, ready.Reason, ready.Message = metav1.ConditionTrue, ReasonReady, "All objects match the spec"
	case errors.As(err, &wait):
		ready.Reason, ready.Message = wait.reason, wait.message
		abnormal = sharedv1.ConditionReconciling
	case errors.As(err, &stall):
		ready.Reason, ready.Message = stall.reason, stall.Error()
		abnormal = sharedv1.ConditionStalled
	default:
		ready.Reason, ready.Message = ReasonRetrying, err.Error()
		abnormal = sharedv1.ConditionReconciling
	}
	ready.Reason = ConditionReason(ready.Reason)
	if len(ready.Message) > maxMessage {
		ready.Message = strings.ToValidUTF8(ready.Message[:maxMessage], "")
	}
	meta.SetStatusCondition(conditions, ready)
	for _, conditionType := range []string{sharedv1.ConditionReconciling, sharedv1.ConditionStalled} {
		if conditionType != abnormal {
			meta.RemoveStatusCondition(conditions, conditionType)
			continue
		}
		condition := ready
		condition.Type, condition.Status = conditionType, metav1.ConditionTrue
		meta.SetStatusCondition(conditions, condition)
	}
}

// notInReasons matches what a reason of metav1.Condition cannot contain.
var notInReasons = regexp.MustCompile(`[^A-Za-z0-9_,:]+`)

// ConditionReason makes a reason of a condition from one of a pod or another object, which may be any text.
func ConditionReason(text string) string {
	const most = 1024
	reason := strings.TrimLeft(notInReasons.ReplaceAllString(text, "_"), "0123456789_,:")
	reason = strings.TrimRight(reason[:min(len(reason), most)], ",:")
	return cmp.Or(reason, "Unknown")
}

// setSuspended sets the conditions of a suspended object. It is unknown whether it is still ready.
func setSuspended(conditions *[]metav1.Condition, generation int64) {
	meta.SetStatusCondition(conditions, metav1.Condition{
		Type: sharedv1.ConditionReady, Status: metav1.ConditionUnknown, ObservedGeneration: generation,
		Reason: ReasonSuspended, Message: "No object is changed while spec.suspend is set",
	})
	meta.RemoveStatusCondition(conditions, sharedv1.ConditionReconciling)
	meta.RemoveStatusCondition(conditions, sharedv1.ConditionStalled)
}

// sameVerdict compares what machines act upon: whether the object is ready, on its way or stalled, and why it is stalled.
func sameVerdict(a, b []metav1.Condition) bool {
	for _, conditionType := range []string{sharedv1.ConditionReady, sharedv1.ConditionReconciling, sharedv1.ConditionStalled} {
		one, other := meta.FindStatusCondition(a, conditionType), meta.FindStatusCondition(b, conditionType)
		switch {
		case one == nil && other == nil:
		case one == nil || other == nil, one.Status != other.Status, one.ObservedGeneration != other.ObservedGeneration:
			return false
		case conditionType == sharedv1.ConditionStalled && one.Reason != other.Reason:
			return false
		}
	}
	return true
}
