// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"context"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// isCtrlC reports whether a context has ended because the user pressed Ctrl-C. The terminal has then sent the signal to the program as
// well, which is in the foreground with us. A second one would end most operators before they have released their lease.
func isCtrlC(ctx context.Context) bool {
	// The cause is an error of package signal, which has no exported type.
	if cause := context.Cause(ctx); cause == nil || !strings.HasPrefix(cause.Error(), os.Interrupt.String()) {
		return false
	}
	terminal, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer terminal.Close()
	foreground, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP)
	return err == nil && foreground == unix.Getpgrp()
}
