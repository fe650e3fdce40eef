// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package librarylog sets the destination of the logs of controller-runtime and client-go in this
// process. It must never be the screen.
package librarylog

import (
	"io"
	"sync"
	"sync/atomic"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// current is where the libraries log at the moment.
//
// The libraries get their logger once for the process, and only what it writes to changes: goroutines of controllers that
// have ended may still look at it.
var current struct {
	set sync.Once
	to  atomic.Pointer[io.Writer]
}

// To makes the libraries log to a writer. It is called before libraries are used; later calls win.
func To(writer io.Writer) {
	current.to.Store(&writer)
	current.set.Do(func() {
		logger := zap.New(zap.WriteTo(currentWriter{}), zap.ConsoleEncoder())
		ctrl.SetLogger(logger)
		klog.SetLogger(logger)
	})
}

// Discard is for verbs in which the logs of the libraries do not help the user.
func Discard() { To(io.Discard) }

// Writer returns where the libraries log at the moment, and nil before the first call of To.
func Writer() io.Writer {
	if to := current.to.Load(); to != nil {
		return *to
	}
	return nil
}

type currentWriter struct{}

func (currentWriter) Write(line []byte) (int, error) { return Writer().Write(line) }
