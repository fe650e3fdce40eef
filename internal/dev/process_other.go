// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package dev

import "syscall"

// processAttributes keep Ctrl-C, which is for this process, from the operator.
func processAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
