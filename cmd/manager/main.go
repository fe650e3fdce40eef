// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Command manager runs the controllers of the fleet.
package main

import (
	"os"
	"runtime/debug"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/opdock/opdock/internal/manager/command"
)

// garbagePercent is lower than Go's default of 100: the heap grows by half of what is live before it is collected, and not by all
// of it. With 1,000 AppServices, about 24 MB are live.
const garbagePercent = 50

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
	}
	os.Exit(command.Run(ctrl.SetupSignalHandler(), os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}
