// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// simplify runs gofmt -s over the files of the generators that are built on gengo. They do so with a process for each
// file; one for all gives the same result. Where there is no gofmt, they go on without, and so does this.
func simplify(ctx context.Context, out *outputs, staging string) error {
	gofmt, found := findGofmt()
	if !found || len(out.unsimplified) == 0 {
		return nil
	}
	for i, file := range out.unsimplified {
		if err := os.WriteFile(stagedName(staging, i), out.files[file], 0o600); err != nil {
			return fmt.Errorf("simplifying: %w", err)
		}
	}
	command := exec.CommandContext(ctx, gofmt, "-s", "-l", "-w", staging) //nolint:gosec // gofmt on our own folder
	var stderr bytes.Buffer
	command.Stderr = &stderr
	changed, err := command.Output()
	if err != nil {
		return fmt.Errorf("running gofmt: %w: %s", err, stderr.String())
	}
	for name := range strings.Lines(string(changed)) {
		number, err := strconv.Atoi(strings.TrimSuffix(filepath.Base(strings.TrimSpace(name)), ".go"))
		if err != nil {
			return fmt.Errorf("running gofmt: it has changed %q", name)
		}
		if out.files[out.unsimplified[number]], err = os.ReadFile(stagedName(staging, number)); err != nil {
			return fmt.Errorf("simplifying: %w", err)
		}
	}
	return nil
}

func stagedName(staging string, number int) string {
	return filepath.Join(staging, strconv.Itoa(number)+".go")
}

// findGofmt prefers the one that the upstream tools would find, which is not always that beside go.
func findGofmt() (path string, found bool) {
	if path, err := exec.LookPath("gofmt"); err == nil {
		return path, true
	}
	goCommand, err := exec.LookPath("go")
	if err != nil {
		return "", false
	}
	path, err = exec.LookPath(filepath.Join(filepath.Dir(goCommand), "gofmt"))
	return path, err == nil
}
