// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/opdock/opdock/internal/filelock"
)

// Header is the first line of a recording.
type Header struct {
	// Opdock is "recording", which identifies the file, and Version the version of its format.
	Opdock  string    `json:"opdock"`
	Version int       `json:"version"`
	Began   time.Time `json:"began"`
	// Made is the version of Opdock that made it.
	Made     string   `json:"made,omitempty"`
	Project  string   `json:"project,omitempty"`
	Command  []string `json:"command,omitempty"`
	Cluster  string   `json:"cluster,omitempty"`
	Identity string   `json:"identity,omitempty"`
	// Traced means that the program is whatever opdock trace was told to run, and not necessarily the operator of the project.
	Traced bool `json:"traced,omitempty"`
}

// Administrator is the identity in recordings of a program with all rights.
const Administrator = "administrator"

const (
	recordingName    = "recording"
	recordingVersion = 1
	// DefaultRecordingSize is how large a recording may become.
	DefaultRecordingSize = 64 << 20
	// retryAfter is how long nothing is written after a write has failed, for example because the disk is full.
	retryAfter = 5 * time.Second
	// gatheringLines is how long events are collected before they are written.
	gatheringLines = 50 * time.Millisecond
)

// ending is the last line of a recording that was ended in order, and is also written when older events are left out.
type ending struct {
	Totals *Totals `json:"totals"`
}

// Recording writes a stream to a file, one JSON object per line. When the file reaches its limit, the older half of
// its events is dropped; the totals still include them.
type Recording struct {
	path   string
	header []byte
	most   int64
	stream *Stream
	cancel context.CancelFunc
	done   chan struct{}

	// These belong to the goroutine and, after its end, to Close.
	file    *os.File
	size    int64
	problem error
	skipped uint64 // events that could not be written
	resume  time.Time
	now     func() time.Time
}

// Record begins to write a stream to a file, which must not exist.
func Record(stream *Stream, path string, header Header, most int64) (*Recording, error) {
	header.Opdock, header.Version = recordingName, recordingVersion
	if header.Began.IsZero() {
		header.Began = time.Now()
	}
	line, err := json.Marshal(header)
	if err != nil {
		return nil, fmt.Errorf("writing a recording: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("creating a directory for recordings: %w", err)
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("creating a recording: %w", err)
	}
	_ = filelock.Shared(file) // so that RemoveOldest keeps it; without locks, it is just not protected
	ctx, cancel := context.WithCancel(context.Background())
	r := &Recording{
		path: path, header: append(line, '\n'), most: orDefault(most, DefaultRecordingSize), stream: stream, cancel: cancel,
		done: make(chan struct{}), file: file, now: time.Now,
	}
	r.append(nil)
	go r.run(ctx)
	return r, nil
}

// Path is where the recording lies.
func (r *Recording) Path() string { return r.path }

// Close ends the recording. Close the lens first: later events are not recorded. Close returns an error if some
// events could not be written.
func (r *Recording) Close() error {
	select {
	case <-r.done:
	default:
		if !r.stream.isClosed() {
			r.cancel()
		}
		<-r.done
	}
	r.cancel()
	r.writeEnding()
	err := r.file.Close()
	switch {
	case r.skipped > 0:
		return fmt.Errorf("%d events are missing in recording %s: %w", r.skipped, r.path, r.problem)
	case r.problem != nil:
		return fmt.Errorf("recording %s is incomplete: %w", r.path, r.problem)
	}
	return err
}

func (r *Recording) run(ctx context.Context) {
	defer close(r.done)
	var lines bytes.Buffer
	encode := json.NewEncoder(&lines)
	encode.SetEscapeHTML(false)
	after := uint64(0)
	for {
		batch, _, news, closed := r.stream.since(after)
		for i := range batch {
			after = batch[i].Seq
			if encode.Encode(&batch[i]) != nil {
				r.skipped++
			}
		}
		if len(batch) > 0 {
			if !r.append(lines.Bytes()) {
				r.skipped += uint64(len(batch))
			}
			lines.Reset()
			continue
		}
		if closed {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-news:
		}
		// Events come in bursts, and writing many at once costs little more than writing one.
		select {
		case <-ctx.Done():
		case <-r.stream.ended:
		case <-time.After(gatheringLines):
		}
	}
}

// append writes whole lines, or nothing. The header comes before the first ones, also if it could not be written at once.
func (r *Recording) append(lines []byte) bool {
	if r.problem != nil && r.now().Before(r.resume) {
		return false
	}
	if r.size+int64(len(lines)) > r.most && r.size > int64(len(r.header)) {
		if err := r.shorten(); err != nil {
			return r.failed(err)
		}
	}
	if r.size == 0 {
		lines = slices.Concat(r.header, lines)
	}
	n, err := r.file.WriteAt(lines, r.size)
	if err != nil {
		// Half a line would be taken for the end of the file.
		_ = r.file.Truncate(r.size)
		return r.failed(err)
	}
	r.size += int64(n)
	if r.skipped == 0 {
		r.problem = nil // nothing is missing
	}
	return true
}

func (r *Recording) failed(err error) bool {
	r.problem, r.resume = err, r.now().Add(retryAfter)
	return false
}

// shorten leaves out the older half.
func (r *Recording) shorten() error {
	old, err := os.Open(r.path)
	if err != nil {
		return err
	}
	defer old.Close()
	if _, err := old.Seek(r.size/2, io.SeekStart); err != nil {
		return err
	}
	rest := bufio.NewReader(io.LimitReader(old, r.size-r.size/2))
	if _, err := rest.ReadSlice('\n'); err != nil && !errors.Is(err, bufio.ErrBufferFull) {
		return err
	} else if err != nil {
		if _, err := rest.ReadString('\n'); err != nil {
			return err
		}
	}
	next, err := os.CreateTemp(filepath.Dir(r.path), ".opdock-*.tmp")
	if err != nil {
		return err
	}
	totals := r.stream.Totals()
	line, err := json.Marshal(ending{&totals})
	if err == nil {
		_, err = next.Write(append(append(bytes.Clone(r.header), line...), '\n'))
	}
	if err == nil {
		_, err = io.Copy(next, rest)
	}
	if err == nil {
		_ = filelock.Shared(next) // as Record does
		err = os.Rename(next.Name(), r.path)
	}
	if err != nil {
		return errors.Join(err, next.Close(), os.Remove(next.Name()))
	}
	size, err := next.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	r.file.Close()
	r.file, r.size = next, size
	return nil
}

func (r *Recording) writeEnding() {
	totals := r.stream.Totals()
	if line, err := json.Marshal(ending{&totals}); err == nil {
		r.resume = time.Time{}
		r.append(append(line, '\n'))
	}
}

// Recorded is what reading a recording found besides its events.
type Recorded struct {
	Header Header
	// Totals count everything, including events that were left out to keep the file within its bound.
	Totals Totals
	// Missing is the number of events that are not in the file, and Cut means that its end is missing.
	Missing uint64
	Cut     bool
}

// NotARecordingError is a file that is something else, or has another format.
type NotARecordingError struct{ Reason string }

func (e *NotARecordingError) Error() string { return "this is not a recording: " + e.Reason }

// maxLine is the longest line of a recording.
const maxLine = 16 << 20

// ReadRecording reads a recording, and passes on its events in order. A truncated file is read as far as it goes.
func ReadRecording(from io.Reader, see func(*Event) error) (*Recorded, error) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxLine)
	found := &Recorded{Cut: true}
	if !lines.Scan() {
		if err := lines.Err(); err != nil && !errors.Is(err, bufio.ErrTooLong) {
			return nil, fmt.Errorf("reading the recording: %w", err)
		}
		return nil, &NotARecordingError{"it is empty, or does not consist of lines"}
	}
	if json.Unmarshal(lines.Bytes(), &found.Header) != nil || found.Header.Opdock != recordingName {
		return nil, &NotARecordingError{"its first line is not the header of a recording"}
	}
	if found.Header.Version > recordingVersion {
		return nil, &NotARecordingError{fmt.Sprintf("its format has version %d, and this opdock reads up to %d: use a newer opdock", found.Header.Version, recordingVersion)}
	}
	counted := newTotals()
	last, damaged := uint64(0), false
	for number := 2; lines.Scan(); number++ {
		if damaged {
			return nil, fmt.Errorf("line %d of the recording is damaged", number-1)
		}
		var line struct {
			Event
			ending

			Opdock string `json:"opdock"`
		}
		if json.Unmarshal(lines.Bytes(), &line) != nil || line.Totals == nil && line.Opdock == "" && line.Seq <= last {
			damaged = true // allowed only at the end
			continue
		}
		if line.Opdock != "" {
			return nil, fmt.Errorf("line %d of the recording begins another recording: keep each one in its own file", number)
		}
		if found.Cut = line.Totals == nil; !found.Cut {
			counted = line.Totals.reopen()
			continue
		}
		found.Missing += line.Seq - last - 1
		last = line.Seq
		counted.add(&line.Event)
		if err := see(&line.Event); err != nil {
			return nil, err
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading the recording: %w", err)
	}
	found.Cut = found.Cut || damaged
	found.Totals = counted.clone()
	return found, nil
}
