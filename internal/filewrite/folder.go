// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package filewrite

import (
	"io/fs"
	"os"
)

// folder is where files are read and written by relative paths. An os.Root allows no path
// outside of it, for untrusted names from a project.
type folder interface {
	ReadFile(name string) ([]byte, error)
	OpenFile(name string, flag int, mode fs.FileMode) (*os.File, error)
	MkdirAll(name string, mode fs.FileMode) error
	Remove(name string) error
	Rename(from, to string) error
}

var (
	_ folder = (*os.Root)(nil)
	_ folder = beyond("")
)

// beyond is a folder that paths may lead out of, for names of our own: a link of the user's in a project may lead anywhere.
type beyond string

func (b beyond) at(name string) string { return absolute(string(b), name) }

func (b beyond) ReadFile(name string) ([]byte, error) { return os.ReadFile(b.at(name)) }

func (b beyond) OpenFile(name string, flag int, mode fs.FileMode) (*os.File, error) {
	return os.OpenFile(b.at(name), flag, mode)
}

func (b beyond) MkdirAll(name string, mode fs.FileMode) error { return os.MkdirAll(b.at(name), mode) }

func (b beyond) Remove(name string) error { return os.Remove(b.at(name)) }

func (b beyond) Rename(from, to string) error { return os.Rename(b.at(from), b.at(to)) }
