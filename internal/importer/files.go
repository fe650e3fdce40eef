// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// FromFiles reads the objects of a dump: a file of manifests or Lists, or a folder of such files, as must-gather and
// similar tools write it. Files that are neither YAML nor JSON, and documents that are no objects, are passed over.
func FromFiles(ctx context.Context, path string, o Options) ([]Object, *Report, error) {
	report := newReport()
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the dump: %w", err)
	}
	var read []Object
	if !info.IsDir() {
		read, err = readFile(ctx, path, report)
		if err == nil && len(read) == 0 {
			err = fmt.Errorf("%s has no objects in it", path)
		}
	} else {
		read, err = readFolder(ctx, path, o, report)
	}
	if err != nil {
		return nil, nil, err
	}
	read, err = withResources(read, o, report)
	return read, report, err
}

func readFolder(ctx context.Context, folder string, o Options, report *Report) ([]Object, error) {
	var all []Object
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)) {
			return err
		}
		relative, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		// A pipe that no process writes to would block for ever.
		if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
			report.Irregular = append(report.Irregular, relative)
			return nil
		}
		read, err := readFile(ctx, path, report)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
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

// readFile returns the objects of all documents, those in Lists one by one. Their resources are not set.
func readFile(ctx context.Context, path string, report *Report) ([]Object, error) {
	file := open(ctx, path)
	defer file.Close()
	text := bufio.NewReaderSize(file, 1<<20)
	if start, _ := text.Peek(4096); bytes.IndexByte(start, 0) >= 0 { // what cannot be read fails below
		return nil, fmt.Errorf("reading %s: it is a binary file, not YAML or JSON; unpack an archive first", path)
	}
	documents := utilyaml.NewYAMLOrJSONDecoder(text, 4096)
	var all []Object
	nameless := 0
	for {
		var document map[string]any
		err := documents.Decode(&document)
		if errors.Is(err, io.EOF) {
			if nameless > 0 {
				report.LeftOut["they have no kind or no name"] += nameless
			}
			return all, nil
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("reading %s: %w", path, context.Cause(ctx))
		}
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, fmt.Errorf("reading %s: the file is cut off", path)
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
		object := &unstructured.Unstructured{Object: document}
		// kubectl writes the kind of a List after its items, so the start of such a file is valid YAML as well.
		if isList(object) && object.GetKind() == "" && object.GetAPIVersion() != "" {
			return nil, fmt.Errorf("reading %s: the file is cut off: its List ends before its kind", path)
		}
		found, skipped := flatten(object)
		for _, one := range found {
			all = append(all, Object{Unstructured: one, File: path})
		}
		if object.GetKind() != "" { // not the results of another tool
			nameless += skipped
		}
	}
}

// open returns the content of a file until the context ends. To open or read a pipe may block, and nothing ends that.
func open(ctx context.Context, path string) io.ReadCloser {
	reader, writer := io.Pipe()
	stop := context.AfterFunc(ctx, func() { _ = writer.CloseWithError(context.Cause(ctx)) })
	go func() {
		defer stop()
		file, err := os.Open(filepath.Clean(path))
		if err == nil {
			defer file.Close()
			_, err = io.Copy(writer, file)
		}
		_ = writer.CloseWithError(err)
	}()
	return reader
}

// isList reports whether an object is a list. A list has no name; an object that has one may have a field "items".
func isList(object *unstructured.Unstructured) bool {
	return object.GetName() == "" && (object.IsList() || strings.HasSuffix(object.GetKind(), "List"))
}

// flatten returns an object, or the objects in a list and in the lists in it, and how many of them have no kind or no
// name. Items get the kind of their list if they have none: the API serves them like this.
func flatten(object *unstructured.Unstructured) (found []*unstructured.Unstructured, skipped int) {
	if !isList(object) {
		if object.GetKind() == "" || object.GetName() == "" {
			return nil, 1
		}
		return []*unstructured.Unstructured{object}, 0
	}
	items, _ := object.Object["items"].([]any)
	kind, typed := strings.CutSuffix(object.GetKind(), "List")
	for _, content := range items {
		item := &unstructured.Unstructured{Object: asMap(content)}
		if item.Object == nil {
			skipped++
			continue
		}
		if typed && kind != "" && item.GetKind() == "" {
			item.SetKind(kind)
			item.SetAPIVersion(object.GetAPIVersion())
		}
		in, without := flatten(item)
		found, skipped = append(found, in...), skipped+without
	}
	return found, skipped
}
