// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/opdock/opdock/internal/gocommand"
	"github.com/opdock/opdock/internal/lines"
)

// cancelGrace is how long go may take to end when its result is no longer wanted.
const cancelGrace = 2 * time.Second

// BuildOptions configures the build of the operator.
type BuildOptions struct {
	Tags string // as go build's -tags
	Race bool
	// Debug keeps debug information in the binary, and does not optimize the project's own code.
	// Without it, linking is faster.
	Debug bool
}

// builder builds the operator's binary.
type builder struct {
	dir    string // of the module
	module string // its path
	main   string // pattern of the main package
	output string // where the binary is to be
	env    []string
	// progress is called with the activity of go from time to time; it may be nil.
	progress func(text string)
	BuildOptions

	built digest // of the existing binary

	marking
}

// buildError is source that does not compile, or a go.mod that does not fit it.
type buildError struct {
	output string // output of go
}

func (e *buildError) Error() string { return e.output }

// build returns whether the binary is another than before. Until it is complete, the one from before stays.
func (b *builder) build(ctx context.Context) (changed bool, err error) {
	next := b.output + ".next"
	if err := os.MkdirAll(filepath.Dir(next), 0o700); err != nil {
		return false, fmt.Errorf("creating a directory for the binary: %w", err)
	}
	// go leaves its files behind if it is ended.
	scratch := b.scratch()
	if err := errors.Join(os.RemoveAll(scratch), os.Mkdir(scratch, 0o700)); err != nil {
		return false, fmt.Errorf("creating a directory for the build: %w", err)
	}
	defer os.RemoveAll(scratch)
	if err := b.prepare(ctx); err != nil {
		return false, err
	}
	output, err := b.run(ctx, next)
	if err != nil && ctx.Err() == nil && b.isToBlame(output) {
		output, err = b.run(ctx, next)
	}
	return b.conclude(ctx, next, output, err)
}

// run runs go build.
func (b *builder) run(ctx context.Context, next string) (output string, err error) {
	cmd := gocommand.Command(ctx, b.dir, b.environment(), b.arguments(next)...)
	cmd.WaitDelay = cancelGrace
	watched := &buildOutput{progress: b.progress}
	messages := lines.NewWriter(watched.read)
	cmd.Stdout, cmd.Stderr = messages, messages
	err = cmd.Run()
	messages.Flush()
	return strings.TrimSpace(strings.Join(watched.said, "\n")), err
}

// conclude evaluates the result of a build.
func (b *builder) conclude(ctx context.Context, next, output string, err error) (changed bool, _ error) {
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case gocommand.IsMissing(err):
		return false, fmt.Errorf("building the operator: the go command was not found on PATH: %w", err)
	case err != nil && output != "":
		return false, &buildError{output: output}
	case err != nil:
		return false, fmt.Errorf("building the operator: %w", err)
	}
	now, err := digestOf(next)
	if err != nil {
		return false, fmt.Errorf("reading the binary: %w", err)
	}
	if now == b.built {
		return false, os.Remove(next)
	}
	if err := os.Rename(next, b.output); err != nil {
		return false, fmt.Errorf("replacing the binary: %w", err)
	}
	b.built = now
	return true, nil
}

var (
	// packageLine is what go build -v prints for each package that it compiles.
	packageLine = regexp.MustCompile(`^[\w.~/+@-]+$`)
	// downloadLine is what go prints for each module that it downloads.
	downloadLine = regexp.MustCompile(`^go: (downloading \S+ \S+)$`)
)

// buildOutput separates go's progress from its messages.
type buildOutput struct {
	progress func(string)
	said     []string
	packages int
}

func (o *buildOutput) read(line string) {
	text := ""
	if match := downloadLine.FindStringSubmatch(line); match != nil {
		text = match[1]
	} else if packageLine.MatchString(line) {
		o.packages++
		text = "building, " + plural(o.packages, "package", "packages") + " compiled"
	} else {
		o.said = append(o.said, line)
	}
	if text != "" && o.progress != nil {
		o.progress(text)
	}
}

func (b *builder) arguments(output string) []string {
	args := []string{"build", "-v", "-o", output}
	if b.instrumented != nil {
		args = append(args, b.instrumented.Flags...)
	}
	if b.Tags != "" {
		args = append(args, "-tags", b.Tags)
	}
	if b.Race {
		args = append(args, "-race")
	}
	own := strings.Fields(lastValue(b.env, "GOFLAGS"))
	sets := func(name string) bool {
		return slices.ContainsFunc(own, func(flag string) bool {
			flag = strings.TrimLeft(flag, "-")
			return flag == name || strings.HasPrefix(flag, name+"=")
		})
	}
	// GOFLAGS of the user take precedence.
	if b.Debug && b.module != "" && !sets("gcflags") {
		args = append(args, "-gcflags="+b.module+"/...=-N -l")
	}
	if !b.Debug && !sets("ldflags") {
		args = append(args, "-ldflags=-w")
	}
	if !sets("buildvcs") {
		// A temporary binary need not contain its commit, and asking git for it takes time.
		args = append(args, "-buildvcs=false")
	}
	return append(args, b.main)
}

// scratch is the directory for temporary files of go, beside the binary.
func (b *builder) scratch() string { return b.output + ".build" }

// environment makes go link on the file system of the binary, so the result is moved instead of copied.
func (b *builder) environment() []string {
	env := slices.Clone(b.env)
	if b.instrumented != nil {
		env = append(env, b.instrumented.Env...)
	}
	if lastValue(b.env, "GOTMPDIR") == "" {
		env = append(env, "GOTMPDIR="+b.scratch())
	}
	return env
}

// lastValue returns the setting of a variable that os/exec would let win.
func lastValue(env []string, name string) string {
	for _, setting := range slices.Backward(env) {
		if value, found := strings.CutPrefix(setting, name+"="); found {
			return value
		}
	}
	return ""
}

// buildIDSize is how far into a binary the linker's build ID is; it changes with the content.
const buildIDSize = 64 << 10

// digestOf identifies a binary. The beginning of the file is enough, because it contains the build ID.
func digestOf(binary string) (d digest, err error) {
	file, err := os.Open(binary)
	if err != nil {
		return d, err
	}
	defer file.Close()
	start, err := io.ReadAll(io.LimitReader(file, buildIDSize))
	if err != nil {
		return d, err
	}
	if !bytes.Contains(start, []byte("Go build ID: ")) {
		rest, err := io.ReadAll(file)
		if err != nil {
			return d, err
		}
		start = append(start, rest...)
	}
	return sha256.Sum256(start), nil
}

// mostLines is how many lines of a compiler's output are shown.
const mostLines = 10

// lines are the first errors, with where they are, as an editor can find them.
func (e *buildError) lines() []string {
	var shown []string
	more := 0
	for line := range strings.Lines(e.output) {
		line = strings.TrimRight(line, "\r\n")
		if line == "" || strings.HasPrefix(line, "# ") { // go names the package above its errors
			continue
		}
		if len(shown) == mostLines {
			more++
			continue
		}
		shown = append(shown, strings.TrimPrefix(line, "./"))
	}
	if more > 0 {
		shown = append(shown, fmt.Sprintf("… and %d more lines", more))
	}
	return shown
}
