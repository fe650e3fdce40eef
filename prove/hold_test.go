// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestOneCampaignAtATime(t *testing.T) {
	dir := t.TempDir()
	left := filepath.Join(dir, "campaign-1", "run-2")
	if err := os.MkdirAll(left, 0o700); err != nil {
		t.Fatal(err)
	}
	first, err := hold(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what a killed campaign has left is still there: %v", err)
	}
	if _, err := hold(dir); !errors.Is(err, ErrRunning) {
		t.Errorf("a second campaign gets %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := hold(dir)
	if err != nil {
		t.Fatalf("after the first has ended: %v", err)
	}
	second.Close()
}
