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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The first signal requests a clean stop. After that, signals have their default effect, so a second one
	// ends the program at once.
	context.AfterFunc(ctx, stop)
	return cli.Run(ctx, cli.NewApp(), os.Args[1:])
}
