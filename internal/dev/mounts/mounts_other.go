// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package mounts

import "os/exec"

// Check reports whether programs can run with the list.
func Check(List) error { return ErrUnsupported }

// Wrap returns ErrUnsupported.
func Wrap(*exec.Cmd, List) error { return ErrUnsupported }
