// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package snapshot reads and writes snapshot files: all objects of a cluster at
// one revision, to be restored on this or another machine.
//
// A file has three parts. Two lines of text come first: the name of the format
// with its version, and a header in JSON. The database of etcd follows,
// compressed with gzip. The last line is the SHA-256 checksum of everything
// before it. Keys and certificates of the cluster are not in it: a restored cluster has its own.
package snapshot

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/semver"

	"github.com/opdock/opdock/controlplane/internal/fault"
	"github.com/opdock/opdock/controlplane/internal/state"
)

const (
	// Format is the version of the file format. It grows by one whenever an
	// older program could misread what a newer one wrote.
	Format = 1

	magic = "opdock-snapshot/"
	// trailerSize is the length of the checksum in hexadecimal and its line break.
	trailerSize = 2*sha256.Size + 1
	// headerLimit is far more than a header needs.
	headerLimit = 64 << 10
)

// Header is the header of a snapshot.
type Header struct {
	// Kubernetes is the version of the control plane that wrote the data.
	Kubernetes string `json:"kubernetes"`
	// Emulated is the version that it emulated; empty if it was its own.
	Emulated string `json:"emulated,omitempty"`
	// AdmissionPlugins are those that were enabled beside the default ones.
	AdmissionPlugins []string `json:"admissionPlugins,omitempty"`
	// Cluster is the name of the cluster.
	Cluster string `json:"cluster,omitempty"`
	// Revision is the resource version of the data.
	Revision int64 `json:"revision"`
	// Objects is how many objects there are.
	Objects int64     `json:"objects"`
	Created time.Time `json:"created"`
	// Size is the number of bytes of the database, uncompressed.
	Size int64 `json:"size"`
}

// Write makes a snapshot file, all of it or nothing. It sets header.Size.
func Write(path string, header Header, database string) (err error) {
	source, err := os.Open(database)
	if err != nil {
		return fmt.Errorf("reading the data: %w", err)
	}
	defer func() { _ = source.Close() }()
	info, err := source.Stat()
	if err != nil {
		return fmt.Errorf("reading the data: %w", err)
	}
	header.Size = info.Size()
	text, err := json.Marshal(header)
	if err != nil {
		return fmt.Errorf("encoding the header: %w", err)
	}

	temporary, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // 0600
	if err != nil {
		return state.WriteFault("writing", path, err)
	}
	defer func() { _ = os.Remove(temporary.Name()) }()
	err = writeTo(temporary, text, source)
	if closeErr := temporary.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(temporary.Name(), path)
	}
	if err != nil {
		return state.WriteFault("writing", path, err)
	}
	return nil
}

func writeTo(file io.Writer, header []byte, database io.Reader) error {
	buffered := bufio.NewWriterSize(file, 1<<20)
	sum := sha256.New()
	out := io.MultiWriter(buffered, sum)
	if _, err := fmt.Fprintf(out, "%s%d\n%s\n", magic, Format, header); err != nil {
		return err
	}
	compressed, err := gzip.NewWriterLevel(out, gzip.BestSpeed)
	if err != nil {
		return err
	}
	if _, err := io.Copy(compressed, database); err != nil {
		return err
	}
	if err := compressed.Close(); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(buffered, hex.EncodeToString(sum.Sum(nil))); err != nil {
		return err
	}
	return buffered.Flush()
}

// File is a snapshot that is open for reading.
type File struct {
	Header Header

	path    string
	file    *os.File
	begin   []byte // the two lines before the data
	dataEnd int64  // where the checksum begins
}

// Open reads the header of a snapshot and refuses one that this control plane, of that Kubernetes version, cannot use.
func Open(path, kubernetes string) (*File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, &fault.Error{
			Reason: fault.BadSnapshot, Message: "the snapshot cannot be read", Cause: err,
			Hint: "list snapshots with \"opdock snapshot list\", or give the path of a snapshot file",
		}
	}
	f := &File{path: path, file: file}
	if err := f.readHeader(kubernetes); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Close closes the file.
func (f *File) Close() { _ = f.file.Close() }

func (f *File) readHeader(kubernetes string) error {
	info, err := f.file.Stat()
	if err != nil {
		return fmt.Errorf("reading %s: %w", f.path, err)
	}
	f.dataEnd = info.Size() - trailerSize
	reader := bufio.NewReader(io.LimitReader(f.file, headerLimit))
	first, err := reader.ReadString('\n')
	number, isSnapshot := strings.CutPrefix(first, magic)
	if !isSnapshot {
		return f.wrong("it is not a snapshot of Opdock", nil)
	}
	format, numberErr := strconv.Atoi(strings.TrimSpace(number))
	if err != nil || numberErr != nil {
		return f.wrong("it is cut off or damaged", errors.Join(err, numberErr))
	}
	if format > Format {
		return f.newer(fmt.Sprintf("format %d", format), fmt.Sprintf("format %d", Format))
	}
	text, err := reader.ReadBytes('\n')
	if err != nil {
		return f.wrong("it is cut off or damaged", errors.New("it ends within the header"))
	}
	if err := json.Unmarshal(text, &f.Header); err != nil {
		return f.wrong("it is cut off or damaged", err)
	}
	if semver.Compare(semver.MajorMinor(f.Header.Kubernetes), semver.MajorMinor(kubernetes)) > 0 {
		return f.newer("Kubernetes "+f.Header.Kubernetes, "Kubernetes "+kubernetes)
	}
	f.begin = append([]byte(first), text...)
	if f.dataEnd < int64(len(f.begin)) {
		return f.wrong("it is cut off or damaged", errors.New("it has no data"))
	}
	return nil
}

// Extract writes the database to a new file. The file is only to be used if there is no error.
func (f *File) Extract(to string) error {
	sum := sha256.New()
	sum.Write(f.begin)
	begin := int64(len(f.begin))
	data := io.TeeReader(io.NewSectionReader(f.file, begin, f.dataEnd-begin), sum)
	size, writeErr, err := decompress(data, to)
	if writeErr != nil {
		return state.WriteFault("writing", to, writeErr)
	}
	// What is left after the compressed data counts as well.
	if err == nil {
		_, err = io.Copy(io.Discard, data)
	}
	if err == nil {
		trailer := make([]byte, trailerSize)
		if _, err = f.file.ReadAt(trailer, f.dataEnd); err == nil && !bytes.Equal(bytes.TrimSpace(trailer), []byte(hex.EncodeToString(sum.Sum(nil)))) {
			err = errors.New("its checksum does not match")
		}
	}
	if err == nil && size != f.Header.Size {
		err = fmt.Errorf("it holds %d of %d bytes", size, f.Header.Size)
	}
	if err != nil {
		return f.wrong("it is cut off or damaged", err)
	}
	return nil
}

// decompress distinguishes errors of the new file from errors of the data.
func decompress(data io.Reader, to string) (size int64, writeErr, readErr error) {
	buffered := bufio.NewReaderSize(data, 1<<20)
	uncompressed, err := gzip.NewReader(buffered)
	if err != nil {
		return 0, nil, err
	}
	file, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, err, nil
	}
	out := &errorKeeper{out: file}
	size, err = io.Copy(out, uncompressed)
	closeErr := file.Close()
	if out.err != nil || closeErr != nil {
		return size, errors.Join(out.err, closeErr), nil
	}
	return size, nil, err
}

type errorKeeper struct {
	out io.Writer
	err error
}

func (w *errorKeeper) Write(data []byte) (int, error) {
	n, err := w.out.Write(data)
	w.err = errors.Join(w.err, err)
	return n, err
}

func (f *File) wrong(what string, cause error) error {
	return &fault.Error{
		Reason:  fault.BadSnapshot,
		Message: fmt.Sprintf("%s cannot be used: %s", f.path, what),
		Hint:    "nothing was changed; use another snapshot, or save it again",
		Cause:   cause,
	}
}

func (f *File) newer(theirs, ours string) error {
	return &fault.Error{
		Reason:  fault.NewerState,
		Message: fmt.Sprintf("the snapshot %s was written by a newer version (%s); this one is %s", f.path, theirs, ours),
		Hint:    "use the newer version of Opdock to restore it",
	}
}
