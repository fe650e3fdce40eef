// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"strings"
	"sync"
)

// Buffer collects the output of a program, and can be read while the program runs. The zero value is empty.
type Buffer struct {
	mutex sync.Mutex
	text  strings.Builder
}

// Write implements io.Writer.
func (b *Buffer) Write(data []byte) (int, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.text.Write(data)
}

// String returns everything that was written.
func (b *Buffer) String() string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.text.String()
}
