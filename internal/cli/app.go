// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/opdock/opdock/generate"
	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/target"
)

// NewApp returns the program as it runs for a user.
func NewApp() *cmdutil.App {
	app := &cmdutil.App{
		Streams:  cmdutil.Streams{Out: os.Stdout, Err: os.Stderr},
		Program:  "opdock",
		Env:      os.Environ(),
		Now:      time.Now,
		Dock:     target.NewDock(),
		Generate: generate.Run,
		Exec:     syscall.Exec,
	}
	// Called by a path, such as bin/opdock, it may well not be on the PATH.
	if strings.ContainsRune(os.Args[0], os.PathSeparator) {
		app.Program = os.Args[0]
	}
	if fd := int(os.Stderr.Fd()); term.IsTerminal(fd) && app.Getenv("TERM") != "dumb" {
		app.ErrSize = func() (int, int) { return terminalSize(fd) }
		app.ErrWidth, _ = terminalSize(fd)
		app.Colour = app.Getenv("NO_COLOR") == ""
	}
	if term.IsTerminal(int(os.Stdin.Fd())) {
		app.Keys = func() (<-chan string, func(), error) { return readKeys(os.Stdin) }
		app.Ask = cmdutil.Asking(os.Stdin, os.Stderr)
	}
	return app
}

func terminalSize(fd int) (width, height int) {
	width, height, err := term.GetSize(fd)
	if err != nil || width <= 0 || height <= 0 {
		return 80, 24
	}
	return width, height
}
