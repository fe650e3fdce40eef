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

// fatalError is what an upstream generator said before it would have ended the process.
type fatalError struct{ message string }

func (e *fatalError) Error() string { return e.message }

// quietMu keeps two runs in one process apart, because klog's settings belong to the process.
var quietMu sync.Mutex

// quietly runs a function while nothing that is logged through klog is seen, and while klog.Fatal, by which the upstream
// generators end on bad input, panics in the goroutine that called it instead of ending the process.
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

// guarded turns a panic of a generator into an error. Those that klog.Fatal caused are the generator's way of reporting
// bad input, and so are strings and errors; anything else is a mistake in the program and keeps its stack.
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
