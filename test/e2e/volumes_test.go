// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opdock/opdock/internal/testenv"
)

// TestClaimsAreBound starts a StatefulSet that wants a volume for each of its pods, and looks where they go.
func TestClaimsAreBound(t *testing.T) {
	w := newWorld(t)
	labels := map[string]string{"app": "db"}
	replicas := int32(2)
	must(w.AppsV1().StatefulSets(w.namespace).Create(t.Context(), &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "db"},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{container("db:1")}},
			},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
				ObjectMeta: metav1.ObjectMeta{Name: "data"},
				Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
				},
			}},
			PersistentVolumeClaimRetentionPolicy: &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
				WhenDeleted: appsv1.DeletePersistentVolumeClaimRetentionPolicyType,
			},
		},
	}, metav1.CreateOptions{}))(t)
	var volumes []string
	for i := range replicas {
		w.awaitReady(t, fmt.Sprintf("db-%d", i))
		claim := must(w.CoreV1().PersistentVolumeClaims(w.namespace).Get(t.Context(), fmt.Sprintf("data-db-%d", i), metav1.GetOptions{}))(t)
		if claim.Status.Phase != corev1.ClaimBound {
			t.Errorf("claim %s is %s", claim.Name, claim.Status.Phase)
		}
		volumes = append(volumes, claim.Spec.VolumeName)
	}
	try(t, w.AppsV1().StatefulSets(w.namespace).Delete(t.Context(), "db", metav1.DeleteOptions{}))
	for _, volume := range volumes {
		testenv.Eventually(t, "volume "+volume+" goes with its claim", func() error {
			_, err := w.CoreV1().PersistentVolumes().Get(t.Context(), volume, metav1.GetOptions{})
			return gone(err)
		})
	}
}
