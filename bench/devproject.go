// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/opdock/opdock/internal/dev"
)

// The project, and the files in it that the benchmark changes.
const (
	devProject    = "test/dev/testdata/ship"
	devController = "internal/controller/ships.go"
	devTypes      = "api/v1/ship_types.go"
)

// devBench has two copies of a project: go build runs by hand in one, and opdock dev runs in the other.
type devBench struct {
	opdock string
	byHand string
	live   string
	output string // the binary that go build writes

	command *exec.Cmd
	rounds  chan dev.Round
	ended   chan error // receives the error that opdock dev ended with
}

func newDevBench(ctx context.Context, work, controlPlane string) (*devBench, error) {
	d := &devBench{
		opdock: filepath.Join(work, "bin", "opdock"), byHand: filepath.Join(work, "byhand", "ship"), live: filepath.Join(work, "live", "ship"),
		output: filepath.Join(work, "bin", "ship"), rounds: make(chan dev.Round, 10), ended: make(chan error, 1),
	}
	if err := runIn(ctx, ".", "go", "build", "-o", d.opdock, "./cmd/opdock"); err != nil {
		return nil, err
	}
	for _, dir := range []string{d.byHand, d.live} {
		if err := copyDevProject(dir); err != nil {
			return nil, err
		}
	}
	// Both copies start with everything generated and built.
	if err := runIn(ctx, d.byHand, d.opdock, "generate"); err != nil {
		return nil, err
	}
	if err := runIn(ctx, d.byHand, "go", "build", "-o", d.output, "./cmd"); err != nil {
		return nil, err
	}
	return d, d.start(ctx, controlPlane)
}

// copyDevProject copies the test project and gives it the dependencies of this repository.
func copyDevProject(dir string) error {
	if err := os.CopyFS(dir, os.DirFS(devProject)); err != nil {
		return err
	}
	for _, file := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		content = regexp.MustCompile(`(?m)^module .*$`).ReplaceAll(content, []byte("module example.com/ship"))
		if err := os.WriteFile(filepath.Join(dir, file), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (d *devBench) start(ctx context.Context, controlPlane string) error {
	d.command = exec.Command(d.opdock, "dev", "-o", "json", "--dir", d.live)
	d.command.Env = append(os.Environ(), "OPDOCK_CONTROLPLANE="+controlPlane)
	var stderr strings.Builder
	d.command.Stderr = &stderr
	output, err := d.command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := d.command.Start(); err != nil {
		return err
	}
	go func() {
		decoder := json.NewDecoder(output)
		for {
			var round dev.Round
			err := decoder.Decode(&round)
			if err == nil {
				d.rounds <- round
				continue
			}
			if errors.Is(err, io.EOF) {
				err = d.command.Wait()
			}
			d.ended <- fmt.Errorf("opdock dev ended: %w\n%s", err, stderr.String())
			return
		}
	}()
	return d.await(ctx)
}

// await returns when a round of opdock dev ends with an operator that reconciles.
func (d *devBench) await(ctx context.Context) error {
	select {
	case round := <-d.rounds:
		if round.Problem != nil || round.State != "reconciling" {
			return fmt.Errorf("the operator does not reconcile: %s %q", round.Line(), round.Details())
		}
		return nil
	case err := <-d.ended:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (d *devBench) stop() {
	if d.command.Process.Signal(os.Interrupt) == nil {
		<-d.ended
	}
}

// saveChange writes a change to a file that differs from round to round.
func saveChange(dir, name string, round int) error {
	file := filepath.Join(dir, name)
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var changed string
	switch name {
	case devController:
		changed = regexp.MustCompile(`"ahoy\d*, "`).ReplaceAllString(string(content), fmt.Sprintf(`"ahoy%d, "`, round+1))
	case devTypes:
		changed = regexp.MustCompile("(?m)^type ShipSpec struct {\n(\tNew.*\n)?").ReplaceAllString(string(content),
			fmt.Sprintf("type ShipSpec struct {\n\tNew%d string `json:\"new%d,omitempty\"`\n", round+1, round+1))
	}
	if changed == string(content) {
		return fmt.Errorf("%s lacks the line that the benchmark changes", file)
	}
	return os.WriteFile(file, []byte(changed), 0o600)
}

// reload measures the time from saving a file until the operator reconciles.
func (d *devBench) reload(ctx context.Context, name string, round int) (time.Duration, error) {
	began := time.Now()
	if err := saveChange(d.live, name, round); err != nil {
		return 0, err
	}
	err := d.await(ctx)
	return time.Since(began), err
}

// build measures go build. If name is not empty, it changes that file first.
func (d *devBench) build(ctx context.Context, name string, round int) (time.Duration, error) {
	if name != "" {
		if err := saveChange(d.byHand, name, round); err != nil {
			return 0, err
		}
	}
	began := time.Now()
	err := runIn(ctx, d.byHand, "go", "build", "-o", d.output, "./cmd")
	return time.Since(began), err
}

// generate measures opdock generate after a change.
func (d *devBench) generate(ctx context.Context, name string, round int) (time.Duration, error) {
	if err := saveChange(d.byHand, name, round); err != nil {
		return 0, err
	}
	began := time.Now()
	err := runIn(ctx, d.byHand, d.opdock, "generate")
	return time.Since(began), err
}

// runIn runs a program in a directory. The error includes the output of the program.
func runIn(ctx context.Context, dir, program string, arguments ...string) error {
	command := exec.CommandContext(ctx, program, arguments...)
	command.Dir = dir
	output, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w\n%s", filepath.Base(program), strings.Join(arguments, " "), err, output)
	}
	return nil
}
