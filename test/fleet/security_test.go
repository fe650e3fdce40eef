// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/fleettest"
	"github.com/opdock/opdock/internal/manager"
	"github.com/opdock/opdock/internal/testenv"
)

// podMakers is one object of each kind that makes pods, with a security profile.
func podMakers(profile string) []string {
	spec := `securityProfile: ` + profile
	return []string{
		`{apiVersion: app.example.com/v1, kind: AppService, metadata: {name: app}, spec: {image: "nginx:1.7.9", ` + spec + `}}`,
		`{apiVersion: app.example.com/v1alpha1, kind: AppService, metadata: {name: alpha}, spec: {image: "nginx:1.7.9", ` + spec + `}}`,
		`{apiVersion: kubegroup.generals.space/v1, kind: PodCluster, metadata: {name: ring}, spec: {` + spec + `, template: {spec: {
		  containers: [{name: main}], initContainers: [{name: first}]}}}}`,
		`{apiVersion: robot.llleon.io/v1, kind: Robot, metadata: {name: robot}, spec: {` + spec + `, template: {spec: {
		  containers: [{name: main}, {name: side}], initContainers: [{name: first, restartPolicy: Always}]}}}}`,
		`{apiVersion: kanggege.k8sio.com/v1, kind: KAPP, metadata: {name: kapp}, spec: {components: [
		  {name: robot, resource: {apiVersion: robot.llleon.io/v1, kind: Robot, spec: {` + spec + `}}}]}}`,
	}
}

// enforce makes a namespace enforce a Pod Security Standard, and returns when it does: admission reads namespaces from a cache.
func enforce(t *testing.T, c client.Client, namespace, level string) {
	t.Helper()
	patch := `{"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "` + level + `"}}}`
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if err := c.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
	testenv.Await(t, func() string {
		forbidden := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "forbidden"},
			Spec:       corev1.PodSpec{HostNetwork: true, Containers: []corev1.Container{{Name: "main", Image: "web"}}},
		}
		if err := c.Create(t.Context(), forbidden, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "violates PodSecurity") {
			return fmt.Sprintf("a pod in the network of its node gets %v", err)
		}
		return ""
	})
}

// Every profile runs where it should, by the judgement of the API server's own admission.
func TestPodSecurityStandards(t *testing.T) {
	c := fleettest.Client(t)
	for _, test := range []struct{ level, profile string }{
		{"baseline", "RuntimeDefault"}, {"baseline", "AsWritten"}, {"restricted", "Restricted"},
	} {
		t.Run(test.profile+" in "+test.level, func(t *testing.T) {
			namespace := clustertest.Namespace(t)
			enforce(t, c, namespace, test.level)
			fleettest.Run(t, fleettest.Config(t), manager.Options{Namespaces: []string{namespace}})
			for _, object := range create(t, c, namespace, podMakers(test.profile)) {
				fleettest.Await(t, c, object, func(o *unstructured.Unstructured) string {
					return fleettest.Ready(conditionsOf(t, o), o.GetGeneration())
				})
			}
		})
	}
}

// Where the profile does not do, the status says what would, and doing it is enough.
func TestStatusNamesTheNeededProfile(t *testing.T) {
	c := fleettest.Client(t)
	namespace := clustertest.Namespace(t)
	enforce(t, c, namespace, "restricted")
	fleettest.Run(t, fleettest.Config(t), manager.Options{Namespaces: []string{namespace}})
	for _, object := range create(t, c, namespace, podMakers("RuntimeDefault")) {
		fleettest.Await(t, c, object, func(o *unstructured.Unstructured) string {
			conditions := conditionsOf(t, o)
			stalled := meta.FindStatusCondition(conditions, "Stalled")
			if stalled == nil || !strings.Contains(stalled.Message, "violates PodSecurity") || !strings.HasSuffix(stalled.Message, "set spec.securityProfile: Restricted") {
				return o.GetKind() + " does not say what to do: " + meta.FindStatusCondition(append(conditions, metav1.Condition{Type: "Ready"}), "Ready").Message
			}
			return ""
		})
		patch := `[{"op": "replace", "path": "/spec/securityProfile", "value": "Restricted"}]`
		if object.GetKind() == "KAPP" {
			patch = strings.Replace(patch, "/spec/", "/spec/components/0/resource/spec/", 1)
		}
		if err := c.Patch(t.Context(), object, client.RawPatch(types.JSONPatchType, []byte(patch))); err != nil {
			t.Fatal(err)
		}
		fleettest.Await(t, c, object, func(o *unstructured.Unstructured) string {
			return fleettest.Ready(conditionsOf(t, o), o.GetGeneration())
		})
	}
}
