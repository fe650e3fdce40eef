// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mounts runs a program that sees different files in certain places, in its own mount
// namespace, if the kernel allows that without privileges. No file of the machine changes.
package mounts

import "errors"

// List holds the mounts of a program.
type List struct {
	// Dir is an empty directory for mount points.
	Dir   string `json:"dir"`
	Files []File `json:"files"`
	// Hostname is the name of the host as the program sees it, if it is not empty.
	Hostname string `json:"hostname,omitempty"`
	// Traceable allows a debugger that is not the parent to attach to the program, if the kernel requires
	// permission.
	Traceable bool `json:"traceable,omitempty"`
}

// File is a file or a folder that is seen at a path. Folders on the way to it need not exist.
type File struct {
	Path   string `json:"path"`
	Source string `json:"source"`
}

// ErrUnsupported means that the system cannot do it.
var ErrUnsupported = errors.New("mount namespaces are not supported on this system")
