// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"

	"github.com/opdock/opdock/controlplane/internal/emulation"
)

// Ensure makes node-0 to node-(n-1) exist; nodes that exist already stay as they are. The client
// needs the right to create nodes, which the simulated kubelets do not have.
func Ensure(ctx context.Context, client kubernetes.Interface, n int) error {
	failures := make([]error, n)
	workqueue.ParallelizeUntil(ctx, 8, n, func(i int) {
		_, err := client.CoreV1().Nodes().Create(ctx, NodeObject(i), metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			failures[i] = fmt.Errorf("creating %s: %w", nodeName(i), err)
		}
	})
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("creating %d nodes: %w", n, err)
	}
	return errors.Join(failures...)
}

// AnyReady reports whether at least one of the nodes takes pods, as far as the simulation decides:
// cordons and taints of a user are none of its business, and nodes that are all lost are so on purpose.
func AnyReady(list []corev1.Node) bool {
	lost := 0
	for i := range list {
		if isReady(&list[i]) {
			return true
		}
		if isLost(&list[i]) {
			lost++
		}
	}
	return lost > 0 && lost == len(list)
}

// isReady reports whether a node is ready and the node lifecycle controller has seen that it is: until
// then a taint keeps pods away.
func isReady(node *corev1.Node) bool {
	for _, taint := range node.Spec.Taints {
		if taint.Key == corev1.TaintNodeNotReady {
			return false
		}
	}
	ready := nodeCondition(&node.Status, corev1.NodeReady)
	return ready != nil && ready.Status == corev1.ConditionTrue
}

// NodeObject is the node of a number as its kubelet would register it. It is Ready from the
// beginning, because a kubelet that does nothing has nothing to wait for. Created through the API
// it gets the not-ready taint all the same, until the node lifecycle controller has seen it;
// written straight into the store it takes pods at once.
func NodeObject(i int) *corev1.Node {
	name := nodeName(i)
	now := time.Now()
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				corev1.LabelHostname:   name,
				corev1.LabelOSStable:   "linux",
				corev1.LabelArchStable: architecture,
				"type":                 "kwok",
			},
		},
		Status: corev1.NodeStatus{
			Capacity:    nodeResources(),
			Allocatable: nodeResources(),
			Conditions:  healthyConditions(nil, now),
			Addresses:   nodeAddresses(name, numberedNodeAddress(i)),
			NodeInfo:    nodeInfo(),
		},
	}
}

const nodePrefix = "node-"

// architecture is the same on every machine, since images and node selectors of tests are too.
const architecture = "amd64"

func nodeName(i int) string { return nodePrefix + strconv.Itoa(i) }

// nodeNumber is the inverse of nodeName.
func nodeNumber(name string) (int, bool) {
	number, err := strconv.ParseUint(strings.TrimPrefix(name, nodePrefix), 10, 16)
	if err != nil || nodeName(int(number)) != name {
		return 0, false
	}
	return int(number), true
}

// numberedNodeAddress is the network's address plus one for every node up to this one. The network
// has 65,534 of them; no single process simulates that many nodes.
func numberedNodeAddress(i int) string {
	base := numberedNodeNetwork.Addr().As4()
	position := i + 1
	return netip.AddrFrom4([4]byte{base[0], base[1], byte(position >> 8), byte(position)}).String()
}

// nodeResources are the CPU and memory of a large machine, so requests and limits matter to the
// scheduler. The number of pods is no such thing here: a kubelet's 110 protects a machine that does not
// exist, and would keep the rest of 1,000 pods pending on one node.
func nodeResources() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("32"),
		corev1.ResourceMemory:           resource.MustParse("256Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"),
		corev1.ResourcePods:             resource.MustParse("10k"),
	}
}

func nodeAddresses(name, ip string) []corev1.NodeAddress {
	return []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: ip},
		{Type: corev1.NodeHostName, Address: name},
	}
}

func nodeInfo() corev1.NodeSystemInfo {
	return corev1.NodeSystemInfo{
		OSImage:                 "Opdock (simulated)",
		KernelVersion:           "simulated",
		ContainerRuntimeVersion: containerRuntimeURI + "2.2.0",
		KubeletVersion:          emulation.Current(),
		OperatingSystem:         "linux",
		Architecture:            architecture,
	}
}

// hostIP is the node's address as its pods report it.
func hostIP(node *corev1.Node) string {
	for _, address := range node.Status.Addresses {
		if address.Type == corev1.NodeInternalIP {
			return address.Address
		}
	}
	return ""
}
