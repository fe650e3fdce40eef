// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"path"
	"slices"
	"strings"
)

// change is a changed file.
type change struct {
	path string // relative to the project, with slashes; absolute for a file of another module
	// generate means that something has changed that generators read.
	generate bool
	// embedded means that a package in a parent folder embeds files.
	embedded bool
}

// work is the work of a round.
type work uint

const (
	workGenerate  work = 1 << iota // code and manifests from Go types
	workManifests                  // CRDs, roles and webhooks that differ from those on the cluster
	workBuild                      // the binary; the operator is restarted if it comes out different
	workFlags                      // read the flags of the binary again
	workRestart                    // restart the operator even with the same binary
	workWebhooks                   // configure webhooks on the API server, once they are served
	workAwait                      // wait until the operator reconciles
	workSamples                    // apply the samples

	workAll = workGenerate | workManifests | workBuild | workFlags | workRestart
)

func (w work) has(one work) bool { return w&one != 0 }

// layout describes a project for classify.
type layout struct {
	main      string   // folder of the operator's main package
	samples   []string // folders; all folders are relative to the project, with slashes
	manifests []string
}

// classify returns the work that a change requires.
func (l layout) classify(c change) work {
	switch name := path.Base(c.path); {
	case name == "go.mod" || name == "go.work":
		return workGenerate | workManifests | workBuild | workFlags
	case name == "go.sum" || name == "go.work.sum":
		return workBuild
	case c.path == "opdock.yaml" || c.path == "Makefile": // both configure generators
		return workGenerate | workManifests
	case strings.HasSuffix(name, ".go"):
		todo := workBuild
		if c.generate {
			todo |= workGenerate | workManifests
		}
		if path.Dir(c.path) == l.main {
			todo |= workFlags
		}
		return todo
	}
	var todo work
	if c.embedded {
		todo |= workBuild
	}
	if !isManifest(c.path) {
		return todo
	}
	if within(l.samples, c.path) {
		todo |= workSamples
	}
	// A separate folder of samples contains nothing else.
	if within(l.manifests, c.path) && !within(l.ownSamples(), c.path) {
		todo |= workManifests
	}
	return todo
}

func (l layout) ownSamples() []string {
	return slices.DeleteFunc(slices.Clone(l.samples), func(dir string) bool { return slices.Contains(l.manifests, dir) })
}

func isManifest(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name))
}

// within reports whether a file is in one of the folders or below.
func within(dirs []string, file string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return dir == "." || strings.HasPrefix(file, dir+"/") })
}
