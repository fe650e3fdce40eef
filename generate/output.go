// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"bytes"
	"fmt"
	"io"
	"sync"

	"golang.org/x/tools/imports"
)

// outputs are the files that the generators of a run have made, in memory.
type outputs struct {
	mu           sync.Mutex        // guards files and unsimplified
	files        map[string][]byte // by absolute path
	unsimplified []string          // files that gofmt -s still has to format
	steps        []Step            // guarded by execute
}

func newOutputs() *outputs { return &outputs{files: map[string][]byte{}} }

// add adds a file. Two generators that write the same file are a mistake in the configuration.
func (o *outputs) add(file string, content []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if other, taken := o.files[file]; taken && !bytes.Equal(other, content) {
		return fmt.Errorf("%s would be written twice, with different content", file)
	}
	o.files[file] = content
	return nil
}

// addUnsimplified keeps a file for gofmt -s.
func (o *outputs) addUnsimplified(file string, content []byte) error {
	if err := o.add(file, content); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.unsimplified = append(o.unsimplified, file)
	return nil
}

// memoryFile is a file that is kept once it is closed.
type memoryFile struct {
	bytes.Buffer
	keep func(content []byte) error
}

var _ io.WriteCloser = (*memoryFile)(nil)

func (f *memoryFile) Close() error { return f.keep(f.Bytes()) }

// formatGo formats a file as gengo does, up to what gofmt -s simplifies, which is done for all files at once.
func formatGo(source []byte) ([]byte, error) {
	return imports.Process("", source, &imports.Options{Comments: true, TabIndent: true, TabWidth: 8, FormatOnly: true})
}
