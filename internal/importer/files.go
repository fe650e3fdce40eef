// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/opdock/opdock/internal/crdspec"
)

// FromFiles reads the objects of a dump: a file of manifests or Lists, or a folder of such files, as must-gather and
// similar tools write it. Files that are neither YAML nor JSON, and documents that are no objects, are passed over.
func FromFiles(path string, o Options) ([]Object, *Report, error) {
	report := newReport()
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the dump: %w", err)
	}
	var read []*unstructured.Unstructured
	if !info.IsDir() {
		read, err = readFile(path)
		if err == nil && len(read) == 0 {
			err = fmt.Errorf("%s has no objects in it", path)
		}
	} else {
		read, err = readFolder(path, o, report)
	}
	if err != nil {
		return nil, nil, err
	}
	return withResources(read, o), report, nil
}

func readFolder(folder string, o Options, report *Report) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)) {
			return err
		}
		relative, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		read, err := readFile(path)
		if err != nil {
			// A dump has logs and results of other tools among its files.
			report.Unreadable = append(report.Unreadable, relative)
			return nil //nolint:nilerr // reported
		}
		all = append(all, read...)
		if o.Progress != nil && len(read) > 0 {
			o.Progress(relative, len(read), len(all))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the dump: %w", err)
	}
	if len(all) == 0 {
		if len(report.Unreadable) > 0 {
			return nil, fmt.Errorf("no file in %s has objects in it; not valid YAML or JSON: %s", folder, strings.Join(report.Unreadable, ", "))
		}
		return nil, fmt.Errorf("no file in %s has objects in it", folder)
	}
	return all, nil
}

// readFile returns the objects of all documents, those in Lists one by one.
func readFile(path string) ([]*unstructured.Unstructured, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the dump: %w", err)
	}
	defer file.Close()
	text := bufio.NewReaderSize(file, 1<<20)
	if start, _ := text.Peek(4096); bytes.IndexByte(start, 0) >= 0 { // what cannot be read fails below
		return nil, fmt.Errorf("reading %s: it is a binary file, not YAML or JSON; unpack an archive first", path)
	}
	documents := utilyaml.NewYAMLOrJSONDecoder(text, 4096)
	var all []*unstructured.Unstructured
	for {
		var document map[string]any
		err := documents.Decode(&document)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, fmt.Errorf("reading %s: the file is cut off", path)
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
		object := &unstructured.Unstructured{Object: document}
		// kubectl writes the kind of a List after its items, so the start of such a file is valid YAML as well.
		if object.IsList() && object.GetKind() == "" && object.GetAPIVersion() != "" {
			return nil, fmt.Errorf("reading %s: the file is cut off: its List ends before its kind", path)
		}
		if !object.IsList() {
			if object.GetKind() != "" && object.GetName() != "" {
				all = append(all, object)
			}
			continue
		}
		err = object.EachListItem(func(item runtime.Object) error {
			if one, ok := item.(*unstructured.Unstructured); ok && one.GetKind() != "" && one.GetName() != "" {
				all = append(all, one)
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
	}
}

// withResources finds out under which resource each object is served: CRDs of the dump say so for their kinds, and
// Kubernetes' own kinds follow its rules for plurals. An object that is there twice counts once.
func withResources(read []*unstructured.Unstructured, o Options) []Object {
	plurals := map[schema.GroupKind]string{}
	for _, object := range read {
		if object.GroupVersionKind().Group != crdResource.Group || object.GetKind() != "CustomResourceDefinition" {
			continue
		}
		definition := crdspec.Of(object)
		plurals[definition.GroupKind()] = definition.Plural
	}
	seen := map[string]bool{}
	var all []Object
	for _, object := range read {
		gvk := object.GroupVersionKind()
		guess, _ := meta.UnsafeGuessKindToResource(gvk)
		one := resource{GroupVersionResource: guess}
		if plural := plurals[gvk.GroupKind()]; plural != "" {
			one.Resource = plural
		}
		one.Name, one.Kind, one.SingularName = one.Resource, gvk.Kind, strings.ToLower(gvk.Kind)
		key := one.GroupResource().String() + "/" + object.GetNamespace() + "/" + object.GetName()
		if seen[key] || !one.wanted(o.Kinds, map[string]bool{}) {
			continue
		}
		seen[key] = true
		all = append(all, Object{Resource: one.GroupResource(), Unstructured: object})
	}
	return all
}
