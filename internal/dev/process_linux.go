// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import "syscall"

// processAttributes keep Ctrl-C, which is for this process, from the operator, and end the operator even if this process
// is killed.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
