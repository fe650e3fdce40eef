// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"os"

	"golang.org/x/term"
)

// readKeys makes a terminal give what is typed at once and without showing it. In this mode Ctrl-C is a key like others,
// so that only this program hears of it, and not also the make that has started it.
func readKeys(terminal *os.File) (typed <-chan string, release func(), err error) {
	before, err := term.MakeRaw(int(terminal.Fd()))
	if err != nil {
		return nil, nil, fmt.Errorf("listening to the keyboard: %w", err)
	}
	keys, done := make(chan string), make(chan struct{})
	go func() {
		buffer := make([]byte, 256)
		for {
			// Reading cannot be interrupted; what is typed after the release is lost, and this ends with the process.
			n, err := terminal.Read(buffer)
			if err != nil {
				return
			}
			select {
			case keys <- string(buffer[:n]):
			case <-done:
				return
			}
		}
	}()
	return keys, func() {
		close(done)
		_ = term.Restore(int(terminal.Fd()), before)
	}, nil
}
