// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"fmt"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// fatalError is the message of an upstream generator that would have ended the process.
type fatalError struct{ message string }

func (e *fatalError) Error() string { return e.message }

// quietMu keeps two runs in one process apart, because klog's settings belong to the process.
var quietMu sync.Mutex

// quietly runs a function with the output of klog discarded. klog.Fatal, which the upstream generators call on bad
// input, panics in the calling goroutine instead of ending the process.
func quietly(run func() error) error {
	quietMu.Lock()
	defer quietMu.Unlock()
	defer klog.CaptureState().Restore()
	klog.SetLoggerWithOptions(logr.Discard(), klog.WriteKlogBuffer(func(line []byte) {
		// The letter at the start of a line is its severity.
		if len(line) > 0 && line[0] == 'F' {
			_, message, _ := strings.Cut(string(line), "] ")
			panic(&fatalError{strings.TrimSpace(message)})
		}
	}))
	return run()
}

// guarded turns a panic of a generator into an error. Panics from klog.Fatal, and with strings and errors, report bad
// input. Any other panic is a bug and keeps its stack.
func guarded(run func() error) (err error) {
	defer func() {
		switch reason := recover().(type) {
		case nil:
		case *fatalError:
			err = reason
		case string:
			err = &fatalError{reason}
		case interface {
			error
			RuntimeError()
		}:
			err = fmt.Errorf("the generator crashed: %w\n%s", reason, debug.Stack())
		case error:
			err = &fatalError{reason.Error()}
		default:
			err = fmt.Errorf("the generator crashed: %v\n%s", reason, debug.Stack())
		}
	}()
	return run()
}
