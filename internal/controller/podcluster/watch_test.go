// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package podcluster

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/opdock/opdock/internal/flow"
)

func TestClustersOfAPod(t *testing.T) {
	const ours, another = "kubegroup.generals.space/v1", "apps/v1"
	for name, test := range map[string]struct {
		apiVersion, kind, owner string // of the controller
		label                   string
		want                    string
	}{
		"one of its own, which is woken once":  {ours, "PodCluster", "ring", "ring", "[default/ring]"},
		"one without a controller":             {label: "ring", want: "[default/ring]"},
		"one whose labels were changed":        {ours, "PodCluster", "ring", "", "[default/ring]"},
		"one that another one has taken":       {ours, "PodCluster", "other", "ring", "[default/other default/ring]"},
		"one of another controller":            {another, "ReplicaSet", "web", "", "[]"},
		"one of another controller in our way": {another, "ReplicaSet", "web", "ring", "[default/ring]"},
		"one of another group":                 {another, "PodCluster", "web", "", "[]"},
		"a pod":                                {want: "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "ring-0"}}
			if test.owner != "" {
				pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: test.apiVersion, Kind: test.kind, Name: test.owner, Controller: ptr.To(true)}}
			}
			if test.label != "" {
				pod.Labels = map[string]string{flow.LabelKind: labelKind, flow.LabelInstance: test.label}
			}
			if got := fmt.Sprint(clustersOf(t.Context(), pod)); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
