// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package objects reads files of objects that were taken from another cluster,
// and writes them into etcd as they are: with their UIDs, their timestamps,
// their generations and their status, none of which the API would take. This happens before the
// API server and the controllers start, so no controller acts on half of them.
//
// A file has two lines of text, the name of the format with its version and a
// header in JSON, and then one object per line, also in JSON. Package
// internal/importer of the main module writes it.
package objects

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/opdock/opdock/controlplane/internal/fault"
)

const (
	// Format is the version of the file format.
	Format = 1

	magic = "opdock-objects/"
	// etcd takes 128 operations and 1.5 MiB at a time.
	batchOperations, batchBytes = 100, 1 << 20
)

// Header describes the content of a file.
type Header struct {
	Objects int `json:"objects"`
	// Nodes is how many of them are nodes.
	Nodes int `json:"nodes"`
}

// Object is one line of a file.
type Object struct {
	Group    string          `json:"group,omitempty"`
	Resource string          `json:"resource"`
	Object   json.RawMessage `json:"object"`
}

// Is reports whether a file contains objects in this format. A file that cannot be read does
// not.
func Is(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }()
	start := make([]byte, len(magic))
	_, err = io.ReadFull(file, start)
	return err == nil && string(start) == magic
}

// File is open for reading.
type File struct {
	Header Header

	path  string
	file  *os.File
	lines *bufio.Reader
}

// Open reads the header of a file.
func Open(path string) (*File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading objects: %w", err)
	}
	f := &File{path: path, file: file, lines: bufio.NewReaderSize(file, 1<<20)}
	first, _ := f.lines.ReadString('\n')
	format, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(first, magic)))
	if err == nil && format > Format {
		f.Close()
		return nil, &fault.Error{
			Reason: fault.NewerState, Message: fmt.Sprintf("%s was written by a newer version (format %d)", path, format),
			Hint: "use the newer version of Opdock",
		}
	}
	header, readErr := f.lines.ReadBytes('\n')
	if err = errors.Join(err, readErr); err == nil {
		err = json.Unmarshal(header, &f.Header)
	}
	if err != nil {
		f.Close()
		return nil, f.damaged(err)
	}
	return f, nil
}

// Close closes the file.
func (f *File) Close() { _ = f.file.Close() }

// next returns io.EOF after the last object.
func (f *File) next() (Object, error) {
	line, err := f.lines.ReadBytes('\n')
	if errors.Is(err, io.EOF) && len(bytes.TrimSpace(line)) == 0 {
		return Object{}, io.EOF
	}
	if err != nil {
		return Object{}, f.damaged(err)
	}
	var object Object
	if err := json.Unmarshal(line, &object); err != nil {
		return Object{}, f.damaged(err)
	}
	return object, nil
}

func (f *File) damaged(cause error) error {
	return &fault.Error{
		Reason: fault.BadSnapshot, Message: f.path + " cannot be used: it is cut off or damaged",
		Hint: "import the objects again", Cause: cause,
	}
}

// Result is what became of the objects.
type Result struct {
	Written int
	LeftOut []string // those that this version of Kubernetes cannot read, and why
}

// Write puts all objects into etcd, under the keys that the API server looks for them.
func (f *File) Write(ctx context.Context, client *clientv3.Client, prefix string, factory serverstorage.StorageFactory) (Result, error) {
	var result Result
	var batch []clientv3.Op
	size, read := 0, 0
	seen := map[string]bool{}
	var last Object // in the batch
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		if _, err := client.Txn(ctx).Then(batch...).Commit(); err != nil {
			return fmt.Errorf("writing %d imported objects of %d bytes, the last is %s: %w", len(batch), size, title(last), err)
		}
		result.Written += len(batch)
		batch, size = nil, 0
		return nil
	}
	for {
		object, err := f.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return result, err
		}
		read++
		key, value, err := encode(object, prefix, factory)
		if err == nil && seen[key] {
			err = errors.New("it exists twice")
		}
		if err != nil {
			result.LeftOut = append(result.LeftOut, fmt.Sprintf("%s: %v", title(object), err))
			klog.InfoS("An imported object was left out", "object", title(object), "reason", err.Error())
			continue
		}
		seen[key] = true
		if size+len(value) > batchBytes {
			if err := flush(); err != nil {
				return result, err
			}
		}
		batch, size, last = append(batch, clientv3.OpPut(key, value)), size+len(value), object
		if len(batch) == batchOperations {
			if err := flush(); err != nil {
				return result, err
			}
		}
	}
	if read != f.Header.Objects {
		return result, f.damaged(fmt.Errorf("it has %d of %d objects", read, f.Header.Objects))
	}
	return result, flush()
}

// encode returns what the API server's storage layer would have written.
func encode(o Object, prefix string, factory serverstorage.StorageFactory) (key, value string, err error) {
	resource := schema.GroupResource{Group: o.Group, Resource: o.Resource}
	folder, builtIn := o.Group+"/"+o.Resource, legacyscheme.Scheme.IsGroupRegistered(o.Group)
	if builtIn {
		folder = factory.ResourcePrefix(resource)
	}
	custom := &unstructured.Unstructured{}
	if err := custom.UnmarshalJSON(o.Object); err != nil {
		return "", "", err
	}
	custom.SetResourceVersion("")
	if custom.GetName() == "" || custom.GetUID() == "" {
		return "", "", errors.New("it has no name or no UID")
	}
	key = strings.TrimSuffix(prefix, "/") + "/" + strings.Trim(folder, "/") + "/"
	if namespace := custom.GetNamespace(); namespace != "" {
		key += namespace + "/"
	}
	key += custom.GetName()
	if !builtIn {
		data, err := custom.MarshalJSON()
		return key, string(data), err
	}
	object, err := runtime.Decode(legacyscheme.Codecs.UniversalDeserializer(), o.Object)
	if err != nil {
		return "", "", err
	}
	accessor, err := meta.Accessor(object)
	if err != nil {
		return "", "", err
	}
	accessor.SetResourceVersion("")
	storage, err := factory.NewConfig(resource, object)
	if err != nil {
		return "", "", err
	}
	data, err := runtime.Encode(storage.Codec, object)
	return key, string(data), err
}

func title(o Object) string {
	var named struct {
		Metadata struct{ Namespace, Name string }
	}
	_ = json.Unmarshal(o.Object, &named)
	name := named.Metadata.Name
	if named.Metadata.Namespace != "" {
		name = named.Metadata.Namespace + "/" + name
	}
	return schema.GroupResource{Group: o.Group, Resource: o.Resource}.String() + " " + name
}
