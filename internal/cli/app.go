// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cli holds the verbs of the opdock command, one file per verb.
//
// Nothing in it reaches for the process it runs in: streams, environment, clock, exec and the functions of package
// cluster come with App, so that every verb can be run in a test exactly as a user runs it.
package cli

import (
	"context"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/opdock/opdock/generate"
)

// defaultCluster is the name of the cluster that is meant when nobody names one.
const defaultCluster = "dock"

// clusterVariable names the environment variable that replaces defaultCluster for one shell.
const clusterVariable = "OPDOCK_CLUSTER"

// Exit codes of the command.
const (
	exitOK    = 0
	exitError = 1
	exitUsage = 2
)

// Streams are what a verb reads and writes. Results go to Out, progress and errors to Err.
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
	// Keys lets the user press keys: they are received as they are typed, Ctrl-C among them, until release is called. It
	// is nil if there is no keyboard.
	Keys func() (typed <-chan string, release func(), err error)
}

// App is the command line program and everything it takes from its surroundings.
type App struct {
	Streams
	// Program is what the user types to run this program. Hints repeat it, so that they can be copied and pasted.
	Program string
	Env     []string
	Now     func() time.Time
	Dock    Dock
	// Ask asks the user, and proposes an answer. It is nil if nobody can be asked.
	Ask func(question, proposal string) (string, error)
	// Generate is generate.Run.
	Generate func(context.Context, generate.Options) (*generate.Result, error)
	// Exec replaces this process with another program and returns only on failure.
	Exec func(path string, argv, env []string) error
}

// NewApp returns the program as it runs for a user.
func NewApp() *App {
	app := &App{
		Streams:  Streams{Out: os.Stdout, Err: os.Stderr},
		Program:  "opdock",
		Env:      os.Environ(),
		Now:      time.Now,
		Dock:     NewDock(),
		Generate: generate.Run,
		Exec:     syscall.Exec,
	}
	// Called by a path, such as bin/opdock, it may well not be on the PATH.
	if strings.ContainsRune(os.Args[0], os.PathSeparator) {
		app.Program = os.Args[0]
	}
	if fd := int(os.Stderr.Fd()); term.IsTerminal(fd) && app.getenv("TERM") != "dumb" {
		app.ErrSize = func() (int, int) { return terminalSize(fd) }
		app.ErrWidth, _ = terminalSize(fd)
		app.Colour = app.getenv("NO_COLOR") == ""
	}
	if term.IsTerminal(int(os.Stdin.Fd())) {
		app.Keys = func() (<-chan string, func(), error) { return readKeys(os.Stdin) }
		app.Ask = asking(os.Stdin, os.Stderr)
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

// Run runs one verb and returns the exit code.
func (a *App) Run(ctx context.Context, args []string) int {
	root := a.newRoot()
	root.SetArgs(args)
	return a.report(root.ExecuteContext(ctx))
}

// getenv returns the last setting of the variable, as the kernel's exec and os.Getenv do not agree on duplicates
// and os/exec makes the last one win.
func (a *App) getenv(name string) string {
	for i := len(a.Env) - 1; i >= 0; i-- {
		if value, found := strings.CutPrefix(a.Env[i], name+"="); found {
			return value
		}
	}
	return ""
}

// defaultName is the cluster that a verb works on without --name.
func (a *App) defaultName() string {
	if name := a.getenv(clusterVariable); name != "" {
		return name
	}
	return defaultCluster
}

// command returns a command line that does something to the named cluster and can be pasted into the user's shell.
func (a *App) command(verb, name string, rest ...string) string {
	words := []string{shellQuote(a.Program), verb}
	if name != a.defaultName() {
		words = append(words, "--name", name)
	}
	return strings.Join(append(words, rest...), " ")
}

// shellQuote quotes a word for a POSIX shell if it needs it.
func shellQuote(word string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=@%+,"
	if word != "" && strings.Trim(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
