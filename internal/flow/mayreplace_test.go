// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
)

func TestAContestAboutAName(t *testing.T) {
	owner := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "owner"}}
	pass := &Pass{owner: owner, contests: &contests{}, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	refused := true // by the server
	replace := func(name string, after time.Duration) error {
		pass.now = pass.now.Add(after)
		next := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(rand.String(8))}}
		replaced, err := pass.MayReplace(next, []string{"spec.tolerations was changed by rival"}, "same", 2*time.Minute)
		if err == nil && !refused {
			replaced()
		}
		return err
	}
	for range 3 * contestAfter {
		if err := replace("web-0", time.Millisecond); err != nil {
			t.Fatalf("what is refused does not count: %v", err)
		}
	}
	refused = false
	for range contestAfter + 2 {
		// The first truces are shorter than a minute.
		if err := replace("web-0", time.Minute); err != nil {
			t.Fatalf("not contested yet: %v", err)
		}
	}
	if err := replace("web-0", time.Second); Reason(err) != ReasonContested || !IsStalled(err) {
		t.Fatalf("got %v", err)
	}
	if err := replace("web-1", 0); err != nil {
		t.Fatalf("another name: %v", err)
	}
	if err := replace("web-0", time.Hour); err != nil || len(pass.contests.children) != 1 {
		t.Fatalf("got %v, and %d contests are known", err, len(pass.contests.children))
	}
}
