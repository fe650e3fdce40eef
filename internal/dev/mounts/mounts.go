// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mounts runs a program that sees other files in certain places than everybody else does: in a mount namespace of
// its own, where the kernel allows that without privileges. No file of the machine changes.
package mounts

import "errors"

// List is what a program sees.
type List struct {
	// Dir is an empty directory for mount points.
	Dir   string `json:"dir"`
	Files []File `json:"files"`
	// Traceable lets a debugger attach to the program that is not its parent, where the kernel asks for permission.
	Traceable bool `json:"traceable,omitempty"`
}

// File is a file that is seen at a path. Folders on the way to it need not exist.
type File struct {
	Path   string `json:"path"`
	Source string `json:"source"`
}

// ErrUnsupported means that the system cannot do it.
var ErrUnsupported = errors.New("mount namespaces are not supported on this system")
