// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"path"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// layer is a tar with a program as its only file. It is compressed once, however often it is read.
type layer struct {
	content, compressed []byte
	diffID, digest      v1.Hash
}

func newLayer(program []byte, entrypoint string, created time.Time) (*layer, error) {
	var content, compressed bytes.Buffer
	archive := tar.NewWriter(&content)
	header := &tar.Header{
		Name: strings.TrimPrefix(path.Clean(entrypoint), "/"), Mode: 0o555, Size: int64(len(program)),
		ModTime: created.UTC(), Typeflag: tar.TypeReg, Format: tar.FormatPAX,
	}
	if err := archive.WriteHeader(header); err != nil {
		return nil, err
	}
	_, err := archive.Write(program)
	if err = errors.Join(err, archive.Close()); err != nil {
		return nil, err
	}
	zipper := gzip.NewWriter(&compressed)
	_, err = zipper.Write(content.Bytes())
	if err = errors.Join(err, zipper.Close()); err != nil {
		return nil, err
	}
	l := &layer{content: content.Bytes(), compressed: compressed.Bytes()}
	if l.diffID, _, err = v1.SHA256(bytes.NewReader(l.content)); err != nil {
		return nil, err
	}
	l.digest, _, err = v1.SHA256(bytes.NewReader(l.compressed))
	return l, err
}

func (l *layer) Digest() (v1.Hash, error) { return l.digest, nil }

func (l *layer) DiffID() (v1.Hash, error) { return l.diffID, nil }

func (l *layer) Compressed() (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(l.compressed)), nil
}

func (l *layer) Uncompressed() (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(l.content)), nil
}

func (l *layer) Size() (int64, error) { return int64(len(l.compressed)), nil }

func (l *layer) MediaType() (types.MediaType, error) { return types.OCILayer, nil }
