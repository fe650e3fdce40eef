// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lines splits the output of programs into lines while they write it.
package lines

import (
	"bytes"
	"sync"
)

// Longest is the length at which a line without an end is passed on.
const Longest = 64 << 10

// Writer calls a function for each line that is written to it. It can be used by several goroutines.
type Writer struct {
	each func(string)

	mutex sync.Mutex
	rest  []byte
}

// NewWriter returns a Writer that calls each, without the end of the line, and one call at a time. A nil function
// discards the lines.
func NewWriter(each func(string)) *Writer { return &Writer{each: each} }

// Write implements io.Writer. It never fails.
func (w *Writer) Write(data []byte) (int, error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.rest = append(w.rest, data...)
	for {
		line, rest, found := bytes.Cut(w.rest, []byte("\n"))
		if !found && len(w.rest) < Longest {
			return len(data), nil
		}
		w.rest = rest
		w.pass(line)
	}
}

// Flush passes on a last line that has no end.
func (w *Writer) Flush() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if len(w.rest) > 0 {
		w.pass(w.rest)
		w.rest = nil
	}
}

func (w *Writer) pass(line []byte) {
	if w.each != nil {
		w.each(string(bytes.TrimRight(line, "\r")))
	}
}
