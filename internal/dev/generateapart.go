// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/opdock/opdock/generate"
)

// generateGrace is how long generators may take to end when their result is no longer wanted.
const generateGrace = 5 * time.Second

// GenerateApart returns a function that runs opdock generate in a separate process, with the given
// environment. Generators change settings of the whole process, such as where klog writes, while other
// goroutines of this one continue; and their memory is returned to the system.
func GenerateApart(env []string) func(context.Context, generate.Options) (*generate.Result, error) {
	return func(ctx context.Context, o generate.Options) (*generate.Result, error) {
		program, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("finding the opdock executable: %w", err)
		}
		arguments := []string{"generate", "--dir", o.Dir, "-o", "json"}
		if len(o.Only) > 0 {
			arguments = append(arguments, "--only", strings.Join(o.Only, ","))
		}
		var output, messages bytes.Buffer
		command := exec.CommandContext(ctx, program, arguments...)
		command.Env, command.Stdout, command.Stderr = env, &output, &messages
		// Ctrl-C is for this process, which then ends the other.
		command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
		command.WaitDelay = generateGrace
		err = command.Run()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return readGenerated(output.Bytes(), messages.String(), err)
	}
}

// readGenerated turns what opdock generate -o json has printed into what generate.Run would have returned.
func readGenerated(output []byte, messages string, failed error) (*generate.Result, error) {
	if failed == nil {
		result := &generate.Result{}
		if err := json.Unmarshal(output, result); err != nil {
			return nil, fmt.Errorf("reading the result of the generators: %w", err)
		}
		return result, nil
	}
	source := &generate.Error{}
	message := strings.TrimPrefix(strings.TrimSpace(messages), "opdock: ")
	switch {
	case json.Unmarshal(output, source) == nil && len(source.Problems) > 0:
		return nil, source
	case strings.HasPrefix(message, generate.ErrNothing.Error()):
		return nil, generate.ErrNothing
	case message != "":
		return nil, errors.New(message)
	default:
		return nil, fmt.Errorf("generating: %w", failed)
	}
}
