// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package drift_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// mostReady is for how long an owner may be Ready with a child that differs: a second, and another one for a busy machine.
	mostReady = 2 * time.Second
	// quickLook is how long it takes to see both on a machine that is not too busy to tell.
	quickLook = 300 * time.Millisecond
)

// honesty finds out whether an owner stays Ready although its child differs.
type honesty struct {
	child       types.UID
	since, last time.Time
}

// holds is called whenever an owner was seen to be Ready after its child was seen to differ. It returns false if that has been
// so for too long. A look that took long, or long after the one before, proves nothing: the machine is busy, or the owner was
// not Ready meanwhile.
func (h *honesty) holds(child types.UID, began, now time.Time) bool {
	if now.Sub(began) > quickLook || began.Sub(h.last) > quickLook || child != h.child {
		h.child, h.since = child, now
	}
	h.last = now
	return now.Sub(h.since) <= mostReady
}

func TestHonesty(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	const quick, slow = 100 * time.Millisecond, time.Second
	for name, test := range map[string]struct {
		look, pause time.Duration
		want        bool
	}{
		"always Ready":      {quick, quick, false},
		"a busy machine":    {slow, quick, true},
		"not Ready as well": {quick, slow, true},
	} {
		h := &honesty{}
		now, got := start, true
		for range 50 {
			began := now.Add(test.pause)
			now = began.Add(test.look)
			got = got && h.holds("child", began, now)
		}
		if got != test.want {
			t.Errorf("%s: holds is %v", name, got)
		}
	}
}
