// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"runtime"
	"testing"
)

func TestThePeakOfAProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux reports the peak memory of a process")
	}
	if peak := peakOf(os.Getpid()); peak < 1e6 || peak > 1e12 {
		t.Errorf("the peak memory of this process is %d bytes", peak)
	}
	if peak := peakOf(-1); peak != 0 {
		t.Errorf("the peak memory of a process that does not exist is %d bytes", peak)
	}
}
