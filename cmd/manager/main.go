// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Command manager runs the controllers of the fleet.
package main

import (
	"os"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/opdock/opdock/internal/manager/command"
)

func main() {
	os.Exit(command.Run(ctrl.SetupSignalHandler(), os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}
