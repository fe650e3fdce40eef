// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Command opdock is the workbench for Kubernetes operators.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/opdock/opdock/internal/cli"
)

func main() {
	os.Exit(run())
}

func run() int {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	// A terminal that is closed ends the program as cleanly, unless it was started by nohup.
	if !signal.Ignored(syscall.SIGHUP) {
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	defer stop()
	// The first signal requests a clean stop. After that, signals have their default effect, so a second one
	// ends the program at once.
	context.AfterFunc(ctx, stop)
	return cli.Run(ctx, cli.NewApp(), os.Args[1:])
}
