// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
)

func findGo() (string, error) {
	path, err := exec.LookPath("go")
	if err != nil {
		return "", &NoGoError{Err: err}
	}
	return path, nil
}

// runGo runs the go command in dir and returns its standard output. onLine gets each line of standard
// error and may be nil.
func runGo(ctx context.Context, dir string, onLine func(string), args ...string) ([]byte, error) {
	path, err := findGo()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(),
		"GOWORK=off",    // the control plane is a module of its own, whatever workspace is around
		"CGO_ENABLED=0", // no C compiler needed, and the binary runs on any libc
		// It has to run here, also if the user is cross-compiling something else.
		"GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH,
	)
	// The go command leaves its compilers running if it is killed, so all of them are interrupted together.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = exitGrace
	var out bytes.Buffer
	cmd.Stdout = &out
	lines := &lineWriter{onLine: onLine}
	cmd.Stderr = lines
	err = cmd.Run()
	lines.flush()
	return out.Bytes(), err
}

// lineWriter calls onLine for each line written to it.
type lineWriter struct {
	onLine func(string)
	rest   []byte
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	for {
		line, rest, found := bytes.Cut(w.rest, []byte("\n"))
		if !found {
			return len(p), nil
		}
		w.rest = rest
		w.say(line)
	}
}

func (w *lineWriter) flush() {
	if len(w.rest) > 0 {
		w.say(w.rest)
		w.rest = nil
	}
}

func (w *lineWriter) say(line []byte) {
	if w.onLine != nil {
		w.onLine(strings.TrimRight(string(line), "\r"))
	}
}
