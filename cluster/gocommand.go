// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"os"
	"runtime"

	"github.com/opdock/opdock/internal/gocommand"
	"github.com/opdock/opdock/internal/lines"
)

func findGo() error {
	if err := gocommand.Find(); err != nil {
		return &NoGoError{Err: err}
	}
	return nil
}

// runGo runs the go command in dir and returns its standard output. onLine gets each line of standard
// error and may be nil.
func runGo(ctx context.Context, dir string, onLine func(string), args ...string) ([]byte, error) {
	if err := findGo(); err != nil {
		return nil, err
	}
	cmd := gocommand.Command(ctx, dir, append(os.Environ(),
		"GOWORK=off",    // the control plane is a separate module, so ignore any workspace
		"CGO_ENABLED=0", // no C compiler needed, and the binary runs on any libc
		// The binary must run on this machine, even if the user cross-compiles something else.
		"GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH,
	), args...)
	var out bytes.Buffer
	cmd.Stdout = &out
	messages := lines.NewWriter(onLine)
	cmd.Stderr = messages
	err := cmd.Run()
	messages.Flush()
	return out.Bytes(), err
}
