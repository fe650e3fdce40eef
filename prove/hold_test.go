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
	first, err := hold(dir)
	if err != nil {
		t.Fatal(err)
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

func TestFilesOfKilledCampaigns(t *testing.T) {
	dir := t.TempDir()
	left := map[string]bool{ // whether it stays
		"campaign-1/run-2": false, "upgrade-3/release": false, "install-4": false, "build": true, "upgrade-notes": true,
	}
	for name := range left {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	held, err := hold(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	for name, stays := range left {
		if _, err := os.Stat(filepath.Join(dir, name)); errors.Is(err, os.ErrNotExist) == stays {
			t.Errorf("%s: %v", name, err)
		}
	}
}
