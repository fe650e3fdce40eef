// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Command opdock is the workbench for Kubernetes operators.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

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

// endAtOnce waits for a second signal, removes temporary directories, and lets the signal have its default effect.
func endAtOnce(ends []os.Signal) {
	first := time.Now()
	again := make(chan os.Signal, len(ends))
	signal.Notify(again, ends...)
	received := second(again, first, time.Now)
	scratch.Clear()
	signal.Reset(ends...)
	if number, ok := received.(syscall.Signal); ok {
		_ = syscall.Kill(os.Getpid(), number) // nothing is left to do if it fails
	}
}

// sameRequest is how soon after the first signal another one is still part of the same request.
const sameRequest = time.Second

// second waits for a signal that is a new request to end. One request may send two signals: timeout sends SIGTERM to the program
// and then to its process group, and service managers can send SIGHUP right after SIGTERM. Ctrl-C is a person who presses it again.
func second(again <-chan os.Signal, first time.Time, now func() time.Time) os.Signal {
	for {
		received := <-again
		if received == os.Interrupt || now().Sub(first) >= sameRequest {
			return received
		}
	}
}
