// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sse writes and reads server-sent events.
package sse

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// Writer writes events to a client.
type Writer struct {
	out     http.ResponseWriter
	control *http.ResponseController
	within  time.Duration
	begun   bool // something was written since the last Flush
}

// NewWriter begins a stream. A client that does not read what is sent together within some time is given up.
func NewWriter(w http.ResponseWriter, within time.Duration) *Writer {
	w.Header().Set("Content-Type", "text/event-stream")
	return &Writer{out: w, control: http.NewResponseController(w), within: within}
}

// Event writes an event; it has no ID if that is empty.
func (w *Writer) Event(name, id string, data []byte) error {
	if id != "" {
		id = "id: " + id + "\n"
	}
	return w.write("event: %s\n%sdata: %s\n\n", name, id, data)
}

// Comment writes something that no client sees, but which shows that the stream is alive.
func (w *Writer) Comment(text string) error { return w.write(": %s\n\n", text) }

func (w *Writer) write(format string, args ...any) error {
	if !w.begun {
		// Writers that know no deadlines, such as those of tests, do without.
		if err := w.control.SetWriteDeadline(time.Now().Add(w.within)); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return err
		}
		w.begun = true
	}
	_, err := fmt.Fprintf(w.out, format, args...)
	return err
}

// Flush sends what was written.
func (w *Writer) Flush() error {
	w.begun = false
	return w.control.Flush()
}

// Read calls see for each event that has data. It returns io.EOF when the stream ends, or what see returns.
func Read(body io.Reader, see func(name, data string) error) error {
	lines := bufio.NewReader(body)
	var event string
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return err
		}
		switch name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": "); name {
		case "event":
			event = value
		case "data":
			if err := see(event, value); err != nil {
				return err
			}
		}
	}
}
