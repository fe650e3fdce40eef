// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package importer reads the objects of another cluster, or of a dump of one, and writes them to a file that a new
// cluster starts with. It only reads from the other cluster.
//
// The objects keep their UIDs, timestamps and status. What would harm a copy is left out or changed, and reported: see
// rules.go.
package importer

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// header of the file, as the control plane reads it.
const header = "opdock-objects/1\n"

// Options configures an import.
type Options struct {
	// Namespaces are those to import; none means all but those of the system.
	Namespaces []string
	// Kinds limits the import to resources, kinds or short names; none means all.
	Kinds []string
	// WithSecrets keeps the contents of Secrets.
	WithSecrets bool
	// SkipForbidden leaves out kinds that the source does not let the user list.
	SkipForbidden bool
	// Progress is called for each kind that was read; it may be nil.
	Progress func(resource string, objects, total int)
}

// Object is one object and the resource that it is served as.
type Object struct {
	Resource schema.GroupResource
	*unstructured.Unstructured
	// File is the file of a dump that it comes from.
	File string

	// anyName says that the rules for its name are not known: it may belong to an aggregated API server.
	anyName bool
}

// Report describes what happened to the objects that were read.
type Report struct {
	Objects int
	// LeftOut has the number of objects that were not imported, by reason.
	LeftOut map[string]int
	// Changed has the number of objects that were imported with a change, by change.
	Changed map[string]int
	// Forbidden are the resources that could not be listed.
	Forbidden []string
	// Unavailable are the API groups that could not be asked.
	Unavailable []string
	// Unreadable are the files of a dump that are not valid YAML or JSON, or that are cut off.
	Unreadable []string
	// Irregular are pipes, sockets and the like in a dump.
	Irregular []string
}

func newReport() *Report { return &Report{LeftOut: map[string]int{}, Changed: map[string]int{}} }

// ForbiddenError is returned if the user may not list some kinds.
type ForbiddenError struct {
	Resources []string
}

func (e *ForbiddenError) Error() string {
	return fmt.Sprintf("%d kinds cannot be listed: %v", len(e.Resources), e.Resources)
}

// Selectable reports whether a selection of kinds can avoid the error. Some kinds are always read.
func (e *ForbiddenError) Selectable() bool {
	return !slices.ContainsFunc(e.Resources, func(resource string) bool {
		return slices.Contains(alwaysImported, schema.ParseGroupResource(resource))
	})
}

// Write writes objects to a file that only its owner can read.
func Write(path string, objects []Object) (err error) {
	file, err := os.OpenFile(filepath.Clean(path), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("writing objects: %w", err)
	}
	defer func() {
		if closeErr := file.Close(); err == nil {
			err = closeErr
		}
	}()
	out := bufio.NewWriterSize(file, 1<<20)
	nodes := 0
	for _, object := range objects {
		if object.Resource == nodeResource {
			nodes++
		}
	}
	if _, err := fmt.Fprintf(out, "%s{\"objects\":%d,\"nodes\":%d}\n", header, len(objects), nodes); err != nil {
		return fmt.Errorf("writing objects: %w", err)
	}
	encoder := json.NewEncoder(out) // one line each
	for _, object := range objects {
		line := struct {
			Group    string         `json:"group,omitempty"`
			Resource string         `json:"resource"`
			Object   map[string]any `json:"object"`
		}{object.Resource.Group, object.Resource.Resource, object.Object}
		if err := encoder.Encode(line); err != nil {
			return fmt.Errorf("writing objects: %w", err)
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("writing objects: %w", err)
	}
	return nil
}
