// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
)

const (
	maxLogSize   = 10 << 20
	excerptLines = 20
	excerptBytes = 1 << 20
	tailBytes    = 64 << 10
)

// logSink is the destination of the control plane's log. It can quote the log if the start fails.
type logSink struct {
	path string    // "" if it is not in a readable file
	from int64     // where in the file this start begins
	own  *os.File  // opened here
	to   io.Writer // given by the caller
	tail *tail     // the latest output to the caller's writer; nil for files
}

// openLog avoids a pipe where possible: a pipe would break when this process is killed, while the control plane still
// has to stop cleanly.
func openLog(dir string, to io.Writer) (*logSink, error) {
	if to == nil {
		return openLogFile(dir)
	}
	f, isFile := to.(*os.File)
	if !isFile {
		t := &tail{limit: tailBytes}
		return &logSink{to: io.MultiWriter(t, to), tail: t}, nil
	}
	s := &logSink{to: f}
	// Terminals and pipes cannot be read back, and their readers already see the log.
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		s.path, s.from = absolute(f.Name()), info.Size()
	}
	return s, nil
}

func openLogFile(dir string) (*logSink, error) {
	guard, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the state directory: %w", err)
	}
	defer guard.Close()
	// Two starts of the same cluster must not both rotate, or the second would throw the old log away. Some
	// network file systems cannot lock a folder; then that risk is smaller than that of not starting.
	_ = lockExclusively(guard, time.Second)
	path := filepath.Join(dir, logFileName)
	info, err := os.Lstat(path)
	if err == nil && info.Size() > maxLogSize {
		err = os.Rename(path, path+".1")
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("rotating the log: %w", err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log: %w", err)
	}
	if info, err = f.Stat(); err != nil {
		f.Close()
		return nil, fmt.Errorf("opening the log: %w", err)
	}
	return &logSink{path: path, from: info.Size(), own: f}, nil
}

// writer is the same for standard output and error, so exec.Cmd keeps their order.
func (s *logSink) writer() io.Writer {
	if s.own != nil {
		return s.own
	}
	return s.to
}

// close releases what only the start needs. The process has its own handle of the file.
func (s *logSink) close() {
	if s.own != nil {
		s.own.Close()
	}
}

// hint names the log at the end of a message, if it is still there.
func (s *logSink) hint() string {
	if s.path == "" {
		return ""
	}
	if _, err := os.Stat(s.path); err != nil {
		return ""
	}
	return "; log: " + s.path
}

// excerpt is what to show of the log when the control plane ended without saying why.
func (s *logSink) excerpt() string {
	lines := tellingLines(s.recent())
	if len(lines) == 0 {
		return " and its log is empty" + s.hint()
	}
	return fmt.Sprintf("%s; last lines of the log:\n  %s", s.hint(), strings.Join(lines, "\n  "))
}

// recent returns the last lines of the log since this start. It also works if the file is already unlinked, because
// it is open here.
func (s *logSink) recent() []byte {
	if s.tail != nil {
		return s.tail.bytes()
	}
	f := s.own
	if f == nil {
		if s.path == "" {
			return nil
		}
		var err error
		if f, err = os.Open(s.path); err != nil {
			return nil
		}
		defer f.Close()
	}
	info, err := f.Stat()
	if err != nil {
		return nil
	}
	from := max(s.from, info.Size()-excerptBytes)
	data, err := io.ReadAll(io.NewSectionReader(f, from, info.Size()-from))
	if err != nil {
		return nil
	}
	return data
}

// lastWords returns the control plane's message about its own end, if the log ends with it. Later lines belong to a
// later start. A full disk may have truncated the line before, so the message may begin in the middle of a line.
func lastWords(path string) string {
	log := string((&logSink{path: path}).recent())
	at := strings.LastIndex(log, binaryName+": ")
	if at < 0 {
		return ""
	}
	words, rest, _ := strings.Cut(log[at+len(binaryName)+2:], "\n")
	if logLine.MatchString(rest) {
		return ""
	}
	return words
}

// logLine matches the beginning of a log line.
var logLine = regexp.MustCompile(`(?m)^[IWEF]\d{4} `)

// tellingLines returns the last lines, or the first lines of a crash, which are followed by stacks.
func tellingLines(log []byte) []string {
	log = bytes.TrimSpace(log)
	if len(log) == 0 {
		return nil
	}
	lines := strings.Split(string(log), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			return lines[i:min(i+excerptLines, len(lines))]
		}
	}
	return lines[max(0, len(lines)-excerptLines):]
}

// tail keeps the end of what is written to it.
type tail struct {
	mu    sync.Mutex
	limit int
	data  []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, p...)
	// Truncate rarely: each byte is moved at most once on average.
	if len(t.data) > 2*t.limit {
		t.data = append([]byte(nil), t.data[len(t.data)-t.limit:]...)
	}
	return len(p), nil
}

func (t *tail) bytes() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return bytes.Clone(t.data)
}
