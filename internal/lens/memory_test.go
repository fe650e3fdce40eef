// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"strconv"
	"testing"
)

// TestMemoryCountsWhatWasDelivered has an object of which a watch delivered a version that is older than those that are kept.
func TestMemoryCountsWhatWasDelivered(t *testing.T) {
	t.Parallel()
	const large = 1 << 20
	m := newMemory(64 * large)
	for i := range 2 * keptVersions {
		m.learn(objectKey{name: "a"}, &version{uid: "u", resourceVersion: strconv.Itoa(i + 1), data: make([]byte, large)}, uint64(max(0, 1-i))) //nolint:gosec // not negative
		if want := int64(min(i+1, keptVersions+1)) * large; m.size < want || m.size > want+large/2 {
			t.Errorf("after %d versions the size is %d, not %d", i+1, m.size, want)
		}
	}
	m = newMemory(4 * large)
	for i := range 16 {
		key := objectKey{name: strconv.Itoa(i)}
		m.learn(key, &version{uid: "u", resourceVersion: "1", data: make([]byte, large)}, 1)
		for v := range keptVersions {
			m.learn(key, &version{uid: "u", resourceVersion: strconv.Itoa(v + 2)}, 0)
		}
	}
	if len(m.entries) > 3 {
		t.Errorf("%d versions of %d bytes are kept in %d bytes", len(m.entries), large, m.most)
	}
	for key := range m.entries {
		m.forget(key, 1, true)
	}
	if m.size != 0 {
		t.Errorf("the size of nothing is %d", m.size)
	}
}
