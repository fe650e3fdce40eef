// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"path"
	"slices"
	"strings"
)

// change is a file that is not what it was.
type change struct {
	path string // relative to the project, with slashes; absolute for a file of another module
	// generate says that something has changed that generators read.
	generate bool
	// embedded says that a package around the file takes files into the binary.
	embedded bool
}

// work is what a round has to do.
type work uint

const (
	workGenerate  work = 1 << iota // code and manifests from Go types
	workManifests                  // CRDs, roles and webhooks, as far as they differ from what the cluster has
	workBuild                      // the binary; the operator is restarted if it comes out different
	workFlags                      // find out anew what the binary can be told on its command line
	workRestart                    // restart the operator even with the same binary
	workWebhooks                   // tell the API server where the webhooks are, once they are served
	workAwait                      // wait until the operator reconciles
	workSamples                    // apply the samples

	workAll = workGenerate | workManifests | workBuild | workFlags | workRestart
)

func (w work) has(one work) bool { return w&one != 0 }

// layout is what classify has to know about a project.
type layout struct {
	main      string   // folder of the operator's main package
	samples   []string // folders; all folders are relative to the project, with slashes
	manifests []string
}

// classify says what is to be done about a change.
func (l layout) classify(c change) work {
	switch name := path.Base(c.path); {
	case name == "go.mod" || name == "go.work":
		return workGenerate | workManifests | workBuild | workFlags
	case name == "go.sum" || name == "go.work.sum":
		return workBuild
	case c.path == "opdock.yaml" || c.path == "Makefile": // both tell generators what to do
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
	// Where samples have a folder of their own, nothing else is in it.
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

// within says whether a file is in one of the folders or below.
func within(dirs []string, file string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return dir == "." || strings.HasPrefix(file, dir+"/") })
}
