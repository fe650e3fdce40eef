// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/kwok/pkg/utils/gotpl"
)

// nodeStatusPatch is the part of a node's status that a stage writes.
type nodeStatusPatch struct {
	Conditions  []corev1.NodeCondition `json:"conditions"`
	Addresses   []corev1.NodeAddress   `json:"addresses,omitempty"`
	Capacity    corev1.ResourceList    `json:"capacity,omitempty"`
	Allocatable corev1.ResourceList    `json:"allocatable,omitempty"`
	NodeInfo    *corev1.NodeSystemInfo `json:"nodeInfo,omitempty"`
}

// stageFunctions are what the templates of the stages call. Stages say when a node's status changes;
// these functions say to what.
func stageFunctions(named *addresses, now func() time.Time) gotpl.FuncMap {
	return gotpl.FuncMap{
		"ReadyStatus": forNode(func(node *corev1.Node) (nodeStatusPatch, error) {
			return readyStatus(node, named, now())
		}),
		"HeartbeatStatus": forNode(func(node *corev1.Node) (nodeStatusPatch, error) {
			return nodeStatusPatch{Conditions: healthyConditions(node.Status.Conditions, now())}, nil
		}),
		"LostStatus": forNode(func(node *corev1.Node) (nodeStatusPatch, error) {
			return nodeStatusPatch{Conditions: lostConditions(node.Status.Conditions, now())}, nil
		}),
	}
}

// forNode lets a typed function be called with the untyped node that templates work on.
func forNode(status func(*corev1.Node) (nodeStatusPatch, error)) func(any) (string, error) {
	return func(untyped any) (string, error) {
		data, err := json.Marshal(untyped)
		if err != nil {
			return "", fmt.Errorf("reading node: %w", err)
		}
		var node corev1.Node
		if err := json.Unmarshal(data, &node); err != nil {
			return "", fmt.Errorf("reading node: %w", err)
		}
		patch, err := status(&node)
		if err != nil {
			return "", fmt.Errorf("status of node %s: %w", node.Name, err)
		}
		data, err = json.Marshal(patch)
		return string(data), err
	}
}

// readyStatus is the first report of a kubelet: that it is healthy, and missing fields of a node
// that was created by hand.
func readyStatus(node *corev1.Node, named *addresses, now time.Time) (nodeStatusPatch, error) {
	patch := nodeStatusPatch{Conditions: healthyConditions(node.Status.Conditions, now)}
	if hostIP(node) == "" {
		ip, err := addressOfNode(node.Name, named)
		if err != nil {
			return nodeStatusPatch{}, err
		}
		patch.Addresses = nodeAddresses(node.Name, ip)
	}
	if len(node.Status.Capacity) == 0 {
		patch.Capacity = nodeResources()
	}
	if len(node.Status.Allocatable) == 0 {
		patch.Allocatable = node.Status.Capacity
		if patch.Allocatable == nil {
			patch.Allocatable = nodeResources()
		}
	}
	if node.Status.NodeInfo.KubeletVersion == "" {
		info := nodeInfo()
		patch.NodeInfo = &info
	}
	return patch, nil
}

func addressOfNode(name string, named *addresses) (string, error) {
	if number, ok := nodeNumber(name); ok {
		return numberedNodeAddress(number), nil
	}
	return named.of(name)
}

// healthyConditions are the conditions of a healthy kubelet.
func healthyConditions(old []corev1.NodeCondition, now time.Time) []corev1.NodeCondition {
	conditions := []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "kubelet is posting ready status"},
		{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientMemory", Message: "kubelet has sufficient memory available"},
		{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasNoDiskPressure", Message: "kubelet has no disk pressure"},
		{Type: corev1.NodePIDPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientPID", Message: "kubelet has sufficient PID available"},
	}
	for i := range conditions {
		conditions[i].LastHeartbeatTime = metav1.NewTime(now)
		conditions[i].LastTransitionTime = transition(old, conditions[i], now)
	}
	return conditions
}

// lostConditions are what the node lifecycle controller makes of the conditions of a kubelet that
// has fallen silent. It would do so after its grace period; who tests a lost node need not wait.
func lostConditions(old []corev1.NodeCondition, now time.Time) []corev1.NodeCondition {
	conditions := healthyConditions(old, now)
	for i := range conditions {
		condition := &conditions[i]
		condition.Status = corev1.ConditionUnknown
		condition.Reason, condition.Message = "NodeStatusUnknown", "Kubelet stopped posting node status."
		condition.LastTransitionTime = transition(old, *condition, now)
		if previous := conditionOfType(old, condition.Type); previous != nil {
			condition.LastHeartbeatTime = previous.LastHeartbeatTime
		}
	}
	return conditions
}

// transition is when a condition got the status that it has.
func transition(old []corev1.NodeCondition, condition corev1.NodeCondition, now time.Time) metav1.Time {
	if previous := conditionOfType(old, condition.Type); previous != nil && previous.Status == condition.Status {
		return previous.LastTransitionTime
	}
	return metav1.NewTime(now)
}

func conditionOfType(conditions []corev1.NodeCondition, kind corev1.NodeConditionType) *corev1.NodeCondition {
	for i := range conditions {
		if conditions[i].Type == kind {
			return &conditions[i]
		}
	}
	return nil
}

func nodeCondition(status *corev1.NodeStatus, kind corev1.NodeConditionType) *corev1.NodeCondition {
	return conditionOfType(status.Conditions, kind)
}
