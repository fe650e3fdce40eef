// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// startFleet runs this program once more, as the server.
func startFleet(ctx context.Context, objects, events int) (address string, end func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	server := exec.CommandContext(ctx, self, "-serve", "-objects", strconv.Itoa(objects), "-events", strconv.Itoa(events))
	server.Cancel = func() error { return server.Process.Signal(os.Interrupt) }
	out, err := server.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := server.Start(); err != nil {
		return "", nil, fmt.Errorf("starting the made-up fleet: %w", err)
	}
	end = func() {
		_ = server.Process.Signal(os.Interrupt)
		_ = server.Wait()
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		end()
		return "", nil, errors.New("the made-up fleet did not say where its page is")
	}
	return strings.TrimSpace(line), end, nil
}
