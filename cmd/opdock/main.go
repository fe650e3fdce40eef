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
	"github.com/opdock/opdock/internal/scratch"
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
	// The first signal requests a clean stop. A second one ends the program at once.
	context.AfterFunc(ctx, func() { endAtOnce(ends) })
	return cli.Run(ctx, cli.NewApp(), os.Args[1:])
}

// endAtOnce waits for a signal, removes temporary directories, and lets the signal have its default effect.
func endAtOnce(ends []os.Signal) {
	again := make(chan os.Signal, 1)
	signal.Notify(again, ends...)
	received := <-again
	scratch.Clear()
	signal.Reset(ends...)
	if number, ok := received.(syscall.Signal); ok {
		_ = syscall.Kill(os.Getpid(), number) // nothing is left to do if it fails
	}
}
