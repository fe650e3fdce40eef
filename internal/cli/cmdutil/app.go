// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cmdutil holds the code that the verbs of the opdock command share: the program and its environment, flags
// and formats, progress, and errors with hints.
//
// It does not use globals of the process: streams, environment, clock, exec and the functions of package cluster
// come from App, so a test can run every verb exactly as a user does.
package cmdutil

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/opdock/opdock/generate"
	"github.com/opdock/opdock/internal/target"
)

// defaultCluster is the name of the default cluster.
const defaultCluster = "dock"

// ClusterVariable names the environment variable that replaces defaultCluster for one shell.
const ClusterVariable = "OPDOCK_CLUSTER"

// Exit codes of the command.
const (
	ExitOK    = 0
	ExitError = 1
	ExitUsage = 2
)

// Streams are the streams of a verb. Results go to Out, progress and errors to Err.
type Streams struct {
	Out io.Writer
	Err io.Writer
	// ErrWidth is the number of columns of the terminal behind Err; 0 means that Err is no terminal on which a
	// line can be drawn again.
	ErrWidth int
	// ErrSize is the size of that terminal at the moment; nil if there is none.
	ErrSize func() (width, height int)
	// Colour allows colours on Err.
	Colour bool
	// Keys starts to receive keys as they are typed, including Ctrl-C, until release is called. It is nil if there is
	// no keyboard.
	Keys func() (typed <-chan string, release func(), err error)
}

// App is the command line program and everything it takes from its surroundings.
type App struct {
	Streams
	// Program is the command that the user types. Hints use it, so users can copy and paste them.
	Program string
	Env     []string
	Now     func() time.Time
	Dock    target.Dock
	// Ask asks the user, proposes an answer, and asks again if check, which may be nil, rejects it. It is nil
	// without a terminal.
	Ask func(ctx context.Context, question, proposal string, check func(string) error) (string, error)
	// Generate is generate.Run.
	Generate func(context.Context, generate.Options) (*generate.Result, error)
	// Exec replaces this process with another program and returns only on failure.
	Exec func(path string, argv, env []string) error
}

// Execute runs a command with arguments, reports its error and returns the exit code.
func (a *App) Execute(ctx context.Context, root *cobra.Command, args []string) int {
	root.SetArgs(args)
	return a.Report(root.ExecuteContext(ctx))
}

// Getenv returns the last setting of the variable, as the kernel's exec and os.Getenv do not agree on duplicates
// and os/exec makes the last one win.
func (a *App) Getenv(name string) string {
	for i := len(a.Env) - 1; i >= 0; i-- {
		if value, found := strings.CutPrefix(a.Env[i], name+"="); found {
			return value
		}
	}
	return ""
}

// DefaultName is the cluster that a verb works on without --name.
func (a *App) DefaultName() string {
	if name := a.Getenv(ClusterVariable); name != "" {
		return name
	}
	return defaultCluster
}

// Command returns a command line that does something to the named cluster and can be pasted into the user's shell.
func (a *App) Command(verb, name string, rest ...string) string {
	words := []string{ShellQuote(a.Program), verb}
	if name != a.DefaultName() {
		words = append(words, "--name", name)
	}
	return strings.Join(append(words, rest...), " ")
}

// ShellQuote quotes a word for a POSIX shell if it needs it.
func ShellQuote(word string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=@%+,"
	if word != "" && strings.Trim(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
