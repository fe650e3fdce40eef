// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"
	"sync"
	"sync/atomic"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// libraryLog is where that goes which the libraries of this process log. It must never be the screen.
//
// The libraries get their logger once for the process, and only what it writes to changes: goroutines of controllers that
// have ended may still look at it.
var libraryLog struct {
	set sync.Once
	to  atomic.Pointer[io.Writer]
}

// logLibrariesTo is called before libraries are used. Later calls win.
func logLibrariesTo(writer io.Writer) {
	libraryLog.to.Store(&writer)
	libraryLog.set.Do(func() {
		logger := zap.New(zap.WriteTo(libraryLogWriter{}), zap.ConsoleEncoder())
		ctrl.SetLogger(logger)
		klog.SetLogger(logger)
	})
}

// silenceLibraries is for verbs in which they have nothing to say that a user could need.
func silenceLibraries() { logLibrariesTo(io.Discard) }

type libraryLogWriter struct{}

func (libraryLogWriter) Write(line []byte) (int, error) { return (*libraryLog.to.Load()).Write(line) }
