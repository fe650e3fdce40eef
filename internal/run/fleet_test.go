// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRunIsAloneOnItsCluster(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "made", "if", "missing")
	const title = `cluster "dock"`
	here := filepath.Join(folder, "fleet.log")
	first, err := openLog(title, here)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.WriteString("from before"); err != nil {
		t.Fatal(err)
	}
	if _, err := openLog(title, here); err == nil || !strings.Contains(err.Error(), `another opdock run is already running the fleet on cluster "dock"`) {
		t.Errorf("a second run is not refused: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := openLog(title, here)
	if err != nil {
		t.Fatalf("the next run is refused: %v", err)
	}
	defer again.Close()
	if log, err := os.ReadFile(here); err != nil || len(log) != 0 {
		t.Errorf("the log begins with that of the last run: %q (%v)", log, err)
	}
}

func TestClaimKeepsOthersAway(t *testing.T) {
	home := t.TempDir()
	release, err := Claim(home, "dock")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Claim(home, "dock"); err == nil || !strings.Contains(err.Error(), `another opdock run is already running the fleet on cluster "dock"`) {
		t.Errorf("a second run is not refused: %v", err)
	}
	other, err := Claim(home, "other")
	if err != nil {
		t.Fatalf("another cluster is refused: %v", err)
	}
	other()
	release()
	again, err := Claim(home, "dock")
	if err != nil {
		t.Fatalf("the next run is refused: %v", err)
	}
	again()
	if left, _ := filepath.Glob(filepath.Join(home, "fleets", "*")); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}
