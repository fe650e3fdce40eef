// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package early is initialized before the packages of Kubernetes, and arranges
// that initializing them costs less. Go initializes packages in the order of
// their import paths as far as their imports allow, and this one imports next
// to nothing and comes before k8s.io.
//
// It saves about a tenth of the start-up. Should the order ever change, nothing
// breaks: it is only slower again.
package early

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"

	"k8s.io/kubectl/pkg/util/i18n"
)

func init() {
	if filepath.Base(os.Args[0]) == "kubectl" {
		return
	}
	// The commands of kubectl unpack its translations while they are
	// initialized. Only kubectl shows them.
	_ = i18n.SetLoadTranslationsFunc(func() error { return nil })
	pauseGarbageCollection()
}

var resume = func() {}

// pauseGarbageCollection lets the start-up allocate its few hundred megabytes
// without collecting in between, which would be a third of its work. After it,
// GOGC is in effect. The limit is for a start that goes wrong.
func pauseGarbageCollection() {
	percent := debug.SetGCPercent(-1)
	limit := debug.SetMemoryLimit(-1)
	debug.SetMemoryLimit(min(limit, 1<<30))
	resume = sync.OnceFunc(func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	})
}

// ResumeGarbageCollection ends the pause once the start-up is over.
func ResumeGarbageCollection() { resume() }
