// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/opdock/opdock/internal/testenv"
)

const (
	conditionLost    = corev1.NodeConditionType("opdock.dev/Lost")
	taintOwn         = "test.opdock.dev/own"
	taintUnreachable = "node.kubernetes.io/unreachable"
)

// addNode adds a simulated node that only pods of this test get on, because it is about to be lost. It has a
// zone of its own, so that it does not count whether other tests lose theirs: of a zone that loses most of its
// nodes at once, the node lifecycle controller evicts no pods. The returned function puts a pod there.
func (w *world) addNode(t *testing.T) (name string, place func(*corev1.PodSpec)) {
	t.Helper()
	name = "node-of-" + w.namespace
	must(w.CoreV1().Nodes().Create(t.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelTopologyZone: name}},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: taintOwn, Value: w.namespace, Effect: corev1.TaintEffectNoSchedule}}},
	}, metav1.CreateOptions{}))(t)
	w.awaitNode(t, name, "Ready True, taints own")
	return name, func(spec *corev1.PodSpec) {
		spec.NodeSelector = map[string]string{corev1.LabelHostname: name}
		spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Key: taintOwn, Value: w.namespace})
	}
}

// tellNode puts into one line what a controller sees of a node.
func tellNode(node *corev1.Node) string {
	line := ""
	for _, condition := range node.Status.Conditions {
		switch condition.Type {
		case corev1.NodeReady:
			line = fmt.Sprintf("Ready %s%s", condition.Status, line)
		case conditionLost:
			line += fmt.Sprintf(", Lost %s %s", condition.Status, condition.Reason)
		}
	}
	var taints []string
	for _, taint := range node.Spec.Taints {
		switch taint.Key {
		case taintOwn:
			taints = append(taints, "own")
		case taintUnreachable:
			taints = append(taints, fmt.Sprintf("unreachable:%s", taint.Effect))
		default:
			taints = append(taints, taint.Key)
		}
	}
	slices.Sort(taints) // two loops of the node lifecycle controller add them, in any order
	return line + ", taints " + strings.Join(taints, " ")
}

const (
	lostForAPod = "Ready Unknown, Lost True PodBehaviour, taints own unreachable:NoExecute unreachable:NoSchedule"
	backAgain   = "Ready True, taints own"
)

func (w *world) awaitNode(t *testing.T, name, want string) *corev1.Node {
	t.Helper()
	var node *corev1.Node
	testenv.Eventually(t, "node "+name, func() (err error) {
		if node, err = w.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			return err
		}
		return expect("it", tellNode(node), want)
	})
	return node
}

func (w *world) awaitNotReady(t *testing.T, name string) *corev1.Pod {
	t.Helper()
	return w.awaitPod(t, name, "is not ready", func(p *corev1.Pod) error {
		if isReady(p) {
			return errors.New("it is")
		}
		return nil
	})
}

// TestLostNode goes the whole way: the node falls silent with all its pods, those that do not tolerate it are
// replaced elsewhere and stay Terminating, and everything heals when the annotation goes.
func TestLostNode(t *testing.T) {
	w := newWorld(t)
	name, place := w.addNode(t)

	// It may run on any node and likes this one best.
	d := deployment("bystander", 1)
	spec, seconds := &d.Spec.Template.Spec, int64(1)
	place(spec)
	spec.NodeSelector = nil
	spec.Tolerations = append(spec.Tolerations, corev1.Toleration{
		Key: taintUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds,
	})
	spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
			Weight: 100,
			Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{
				Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{name},
			}}},
		}},
	}}
	w.startDeployment(t, d)
	bystander := w.pods(t, "bystander")[0]
	if bystander.Spec.NodeName != name {
		t.Fatalf("the bystander is on %s", bystander.Spec.NodeName)
	}
	p := pod("node-lost", corev1.RestartPolicyAlways)
	place(&p.Spec)
	culprit := w.createPod(t, p)

	node := w.awaitNode(t, name, lostForAPod)
	for _, condition := range node.Status.Conditions {
		if condition.Type == conditionLost && !strings.Contains(condition.Message, w.namespace+"/"+culprit.Name) {
			t.Errorf("the condition does not name the pod: %s", condition.Message)
		}
		if condition.Type == corev1.NodeReady && condition.Reason != "NodeStatusUnknown" {
			t.Errorf("the node is not ready for %s", condition.Reason)
		}
	}
	w.awaitNotReady(t, culprit.Name)
	for _, about := range []string{culprit.Name, bystander.Name, name} {
		w.awaitEvent(t, about, "NodeNotReady")
	}

	testenv.Eventually(t, "the bystander is replaced on another node", func() error {
		for _, replacement := range w.pods(t, "bystander") {
			if replacement.Spec.NodeName != name && isReady(&replacement) {
				return nil
			}
		}
		return errors.New("it is not")
	})
	held := must(w.CoreV1().Pods(w.namespace).Get(t.Context(), bystander.Name, metav1.GetOptions{}))(t)
	if held.DeletionTimestamp == nil || held.Status.Phase != corev1.PodRunning {
		t.Errorf("no kubelet confirms its end, and yet the bystander is %s and being deleted since %v", held.Status.Phase, held.DeletionTimestamp)
	}

	w.annotatePod(t, culprit.Name, "")
	w.awaitNode(t, name, backAgain)
	w.awaitReady(t, culprit.Name)
	testenv.Eventually(t, "the bystander is gone", func() error {
		_, err := w.CoreV1().Pods(w.namespace).Get(t.Context(), bystander.Name, metav1.GetOptions{})
		return gone(err)
	})
}

func TestLostNodeComesBackInTime(t *testing.T) {
	w := newWorld(t)
	name, place := w.addNode(t)
	p := pod("node-lost,for=1s", corev1.RestartPolicyAlways)
	place(&p.Spec)
	f := w.follow(t, w.createPod(t, p))
	f.expect(t, "Running: running, Ready", "Running: running", "Running: running, Ready")
	w.awaitNode(t, name, backAgain)
}

func TestLostNodeComesBackByForce(t *testing.T) {
	w := newWorld(t)
	name, place := w.addNode(t)
	p := pod("node-lost", corev1.RestartPolicyAlways)
	place(&p.Spec)
	made := w.createPod(t, p)
	w.awaitNode(t, name, lostForAPod)
	pods := w.CoreV1().Pods(w.namespace)
	try(t, pods.Delete(t.Context(), made.Name, metav1.DeleteOptions{}))
	w.awaitNotReady(t, made.Name)
	if _, err := pods.Get(t.Context(), made.Name, metav1.GetOptions{}); err != nil {
		t.Errorf("deleted without force and without a confirmation, the pod is gone: %v", err)
	}
	try(t, pods.Delete(t.Context(), made.Name, *metav1.NewDeleteOptions(0)))
	w.awaitNode(t, name, backAgain)
}

func TestNodeIsLostByItsOwnAnnotation(t *testing.T) {
	w := newWorld(t)
	name, place := w.addNode(t)
	p := pod("", corev1.RestartPolicyAlways)
	place(&p.Spec)
	made := w.awaitReady(t, w.createPod(t, p).Name)
	annotate := func(behaviour string) {
		t.Helper()
		must(w.CoreV1().Nodes().Patch(t.Context(), name, types.MergePatchType, annotationPatch(t, behaviour), metav1.PatchOptions{}))(t)
	}
	annotate("node-lost")
	w.awaitNotReady(t, made.Name)
	w.awaitNode(t, name, strings.Replace(lostForAPod, "PodBehaviour", "NodeBehaviour", 1))
	annotate("")
	w.awaitNode(t, name, backAgain)
	w.awaitReady(t, made.Name)
}
