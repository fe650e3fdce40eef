// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// TestWritesDuringADeletion are to an object that is being deleted. The answer to the one that ends it has the version of before.
func TestWritesDuringADeletion(t *testing.T) {
	t.Parallel()
	pod := func(version string, grace *int64, label string, finalizers ...string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: "web", UID: "u", ResourceVersion: version, Labels: map[string]string{"a": label}, Finalizers: finalizers,
			DeletionTimestamp: &metav1.Time{Time: time.Unix(1, 0)}, DeletionGracePeriodSeconds: grace,
		}}
	}
	for name, test := range map[string]struct {
		before, now *corev1.Pod
		known       bool
	}{
		"during the grace period":             {pod("1", ptr.To(int64(30)), "1"), pod("2", ptr.To(int64(30)), "2"), true},
		"with a finalizer":                    {pod("1", ptr.To(int64(0)), "1", "x"), pod("2", ptr.To(int64(0)), "2", "x"), true},
		"without the last finalizer":          {pod("1", ptr.To(int64(0)), "1", "x"), pod("1", ptr.To(int64(0)), "1"), false},
		"without it, and no grace period set": {pod("1", nil, "1", "x"), pod("1", nil, "1"), false},
	} {
		r := &Request{Verb: "patch", Status: http.StatusOK, Resource: Resource{Version: "v1", Resource: "pods", Name: "web"}}
		c := changed(r, versionOf(test.before, nil, encodedProtobuf, false, time.Time{}), false, test.now, "")
		if (c != nil) != test.known || c != nil && (len(c.Fields) != 1 || c.Fields[0].Path != "metadata.labels.a") {
			t.Errorf("%s: %+v", name, c)
		}
	}
}
