// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"testing"
	"time"
)

func TestAge(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0s", 119 * time.Second: "119s", 2 * time.Minute: "2m0s", 10*time.Minute - 1: "9m59s",
		10 * time.Minute: "10m", 3*time.Hour - 1: "179m", 3 * time.Hour: "3h", 47 * time.Hour: "47h", 480 * time.Hour: "20d",
	} {
		if got := Age(d); got != want {
			t.Errorf("%v: got %s, want %s", d, got, want)
		}
	}
}
