// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/klog/v2/ktesting"
	"sigs.k8s.io/kwok/pkg/log"
	"sigs.k8s.io/kwok/pkg/utils/gotpl"
	"sigs.k8s.io/kwok/pkg/utils/lifecycle"
)

func nodeWith(conditions ...corev1.NodeCondition) *corev1.Node {
	node := NodeObject(0)
	node.UID = "node"
	if len(conditions) > 0 {
		node.Status.Conditions = conditions
	}
	return node
}

func condition(kind corev1.NodeConditionType, status corev1.ConditionStatus) corev1.NodeCondition {
	return corev1.NodeCondition{Type: kind, Status: status, LastTransitionTime: metav1.NewTime(epoch), LastHeartbeatTime: metav1.NewTime(epoch)}
}

// play returns the stage that kwok plays for a node, "" if none, and the node afterwards.
func play(t *testing.T, node *corev1.Node, now time.Time) (string, *corev1.Node, time.Duration) {
	t.Helper()
	stages, err := nodeStages()
	if err != nil {
		t.Fatal(err)
	}
	subject := &lifecycle.Event{Labels: node.Labels, Annotations: node.Annotations, Data: node}
	possible, err := stages.ListAllPossible(t.Context(), subject)
	if err != nil {
		t.Fatal(err)
	}
	if len(possible) == 0 {
		return "", node, 0
	}
	if len(possible) > 1 {
		t.Fatalf("%d stages match; kwok would choose one at random", len(possible))
	}
	delay, _, err := possible[0].Delay(t.Context(), subject, now)
	if err != nil {
		t.Fatal(err)
	}
	renderer := gotpl.NewRenderer(stageFunctions(newAddresses(namedNodeNetwork), func() time.Time { return now }))
	after := &corev1.Node{}
	_, err = possible[0].DoSteps(0, nil, node, renderer, nil, nil, func(patch *lifecycle.Patch) error {
		before, err := json.Marshal(node)
		if err != nil {
			return err
		}
		if patch.Subresource != "status" {
			return fmt.Errorf("patches %q, for which there are no rights", patch.Subresource)
		}
		patched, err := strategicpatch.StrategicMergePatch(before, patch.Data, node)
		if err != nil {
			return err
		}
		return json.Unmarshal(patched, after)
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return possible[0].Name(), after, delay
}

func TestStagesOfANode(t *testing.T) {
	for name, test := range map[string]struct {
		node  *corev1.Node
		stage string
		ready corev1.ConditionStatus // afterwards
	}{
		"without a status":       {&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}, "node-ready", corev1.ConditionTrue},
		"not ready":              {nodeWith(condition(corev1.NodeReady, corev1.ConditionFalse)), "node-ready", corev1.ConditionTrue},
		"silent for no reason":   {nodeWith(condition(corev1.NodeReady, corev1.ConditionUnknown)), "node-ready", corev1.ConditionTrue},
		"healthy":                {nodeWith(), "node-heartbeat", corev1.ConditionTrue},
		"lost just now":          {nodeWith(condition(corev1.NodeReady, corev1.ConditionTrue), condition(Lost, corev1.ConditionTrue)), "node-lost", corev1.ConditionUnknown},
		"lost before its status": {nodeWith(condition(Lost, corev1.ConditionTrue)), "node-lost", corev1.ConditionUnknown},
		"lost for some time":     {nodeWith(condition(corev1.NodeReady, corev1.ConditionUnknown), condition(Lost, corev1.ConditionTrue)), "", corev1.ConditionUnknown},
		"no longer lost":         {nodeWith(condition(corev1.NodeReady, corev1.ConditionUnknown), condition(Lost, corev1.ConditionFalse)), "node-ready", corev1.ConditionTrue},
	} {
		t.Run(name, func(t *testing.T) {
			stage, after, _ := play(t, test.node, epoch)
			if stage != test.stage {
				t.Errorf("stage = %q; want %q", stage, test.stage)
			}
			if ready := nodeCondition(&after.Status, corev1.NodeReady); ready == nil || ready.Status != test.ready {
				t.Errorf("Ready = %+v; want %s", ready, test.ready)
			}
		})
	}
}

func TestHeartbeatComesLaterThanThePlayOfALostNode(t *testing.T) {
	if _, _, delay := play(t, nodeWith(), epoch); delay < 5*time.Minute {
		t.Errorf("heartbeat after %s; a kubelet posts every five minutes", delay)
	}
	if _, _, delay := play(t, nodeWith(condition(Lost, corev1.ConditionTrue)), epoch); delay != 0 {
		t.Errorf("node-lost after %s; want at once", delay)
	}
}

func TestHeartbeatKeepsTheTimeOfTransition(t *testing.T) {
	later := epoch.Add(time.Hour).Truncate(time.Second)
	_, after, _ := play(t, nodeWith(healthyConditions(nil, epoch.Truncate(time.Second))...), later)
	ready := nodeCondition(&after.Status, corev1.NodeReady)
	if !ready.LastHeartbeatTime.Time.Equal(later) || !ready.LastTransitionTime.Time.Equal(epoch.Truncate(time.Second)) {
		t.Errorf("heartbeat %s, transition %s; want %s and %s", ready.LastHeartbeatTime, ready.LastTransitionTime, later, epoch)
	}
}

func TestReadyFillsInOnlyWhatIsMissing(t *testing.T) {
	mine := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "mine"},
		Status: corev1.NodeStatus{
			Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")},
			NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v1.2.3"},
		},
	}
	_, after, _ := play(t, mine, epoch)
	if cpu := after.Status.Allocatable[corev1.ResourceCPU]; cpu.String() != "2" || len(after.Status.Capacity) != 1 {
		t.Errorf("allocatable %v of capacity %v; want what the user has set", after.Status.Allocatable, after.Status.Capacity)
	}
	if after.Status.NodeInfo.KubeletVersion != "v1.2.3" {
		t.Errorf("kubelet version = %s; want the user's", after.Status.NodeInfo.KubeletVersion)
	}
	if !strings.HasPrefix(hostIP(after), "10.65.") {
		t.Errorf("address = %q; want one of %s", hostIP(after), namedNodeNetwork)
	}
}

func TestKwokLogIsQuietAboutWhatIsNoWarning(t *testing.T) {
	var output bytes.Buffer
	logger := ktesting.NewLogger(writerTL{&output}, ktesting.NewConfig())
	kwok := log.NewLogger(&kwokLog{logger: logger}, log.LevelWarn).With("node", "node-0")
	kwok.Info("Patch node")
	if output.Len() != 0 {
		t.Errorf("logged %q", output.String())
	}
	kwok.Warn("slow")
	kwok.Error("failed", "err", errors.New("no route"))
	for _, want := range []string{"kwok: slow", "kwok: failed", "no route", "node-0"} {
		if !strings.Contains(output.String(), want) {
			t.Errorf("log %q lacks %q", output.String(), want)
		}
	}
}

// writerTL lets ktesting write into a buffer.
type writerTL struct{ *bytes.Buffer }

func (w writerTL) Helper()         {}
func (w writerTL) Log(args ...any) { fmt.Fprintln(w.Buffer, args...) }
func (w writerTL) Cleanup(func())  {}
func (w writerTL) Name() string    { return "" }
