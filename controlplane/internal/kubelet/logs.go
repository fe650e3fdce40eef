// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"k8s.io/utils/ptr"
)

// LogsAnnotation on a pod is its log. With a dot and a container's name appended it is that container's.
const LogsAnnotation = "opdock.dev/logs"

// followInterval is the interval at which a followed log is checked.
const followInterval = 200 * time.Millisecond

// logOptions are the options of a log request.
type logOptions struct {
	follow, previous, timestamps bool
	tail, limit                  *int64
	since                        time.Time
}

func parseLogOptions(r *http.Request, now time.Time) (logOptions, error) {
	query := r.URL.Query()
	o := logOptions{
		follow: query.Get("follow") == "true", previous: query.Get("previous") == "true", timestamps: query.Get("timestamps") == "true",
	}
	for name, to := range map[string]**int64{"tailLines": &o.tail, "limitBytes": &o.limit} {
		if text := query.Get(name); text != "" && text != "all" {
			number, err := strconv.ParseInt(text, 10, 64)
			if err != nil || number < 0 {
				return o, fmt.Errorf("%s must be a number of at least 0, not %q", name, text)
			}
			*to = ptr.To(number)
		}
	}
	switch {
	case query.Get("sinceTime") != "":
		since, err := time.Parse(time.RFC3339Nano, query.Get("sinceTime"))
		if err != nil {
			return o, fmt.Errorf("sinceTime: %w", err)
		}
		o.since = since
	case query.Get("sinceSeconds") != "":
		seconds, err := strconv.ParseInt(query.Get("sinceSeconds"), 10, 64)
		if err != nil {
			return o, fmt.Errorf("sinceSeconds: %w", err)
		}
		o.since = now.Add(-time.Duration(seconds) * time.Second)
	}
	return o, nil
}

func (s *Server) serveLogs(w http.ResponseWriter, r *http.Request, t target) {
	options, err := parseLogOptions(r, time.Now())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if waiting := t.status.State.Waiting; waiting != nil && t.status.LastTerminationState.Terminated == nil {
		http.Error(w, fmt.Sprintf("container %q in pod %q is waiting to start: %s", t.container, t.pod.Name, waiting.Reason), http.StatusBadRequest)
		return
	}
	if options.previous && t.status.LastTerminationState.Terminated == nil {
		http.Error(w, fmt.Sprintf("previous terminated container %q in pod %q not found", t.container, t.pod.Name), http.StatusBadRequest)
		return
	}
	text, err := s.logOf(t)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	out := io.Writer(w)
	if options.limit != nil {
		out = &limitedWriter{out: w, left: *options.limit}
	}
	if _, err := io.WriteString(out, options.excerpt(text, t.started())); err != nil || !options.follow {
		return
	}
	s.follow(r.Context(), t, text, func(more string) error {
		_, err := io.WriteString(out, options.stamped(more, time.Now()))
		return errors.Join(err, http.NewResponseController(w).Flush())
	})
}

// logOf returns the whole log of a container.
func (s *Server) logOf(t target) (string, error) {
	if text, found := t.annotation(LogsAnnotation); found {
		return ended(text), nil
	}
	text, err := s.logFile(t)
	if err != nil || text != "" {
		return ended(text), err
	}
	return fmt.Sprintf("opdock: container %s of pod %s is simulated and writes no log. The annotation %s sets what is shown here.\n",
		t.container, t.pod.Name, LogsAnnotation), nil
}

// logFile reads the log that a user has put into the state folder: for the container, else for the pod.
func (s *Server) logFile(t target) (string, error) {
	if s.logs == "" {
		return "", nil
	}
	// Links that lead out of the folder are not followed.
	root, err := os.OpenRoot(s.logs)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer func() { _ = root.Close() }()
	for _, name := range []string{path.Join(t.pod.Namespace, t.pod.Name, t.container+".log"), path.Join(t.pod.Namespace, t.pod.Name+".log")} {
		data, err := root.ReadFile(name)
		if err == nil {
			return string(data), nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("reading the log of pod %s: %w", t.pod.Name, err)
		}
	}
	return "", nil
}

// follow sends additions to a log until the container ends or the client disconnects.
func (s *Server) follow(ctx context.Context, t target, known string, tell func(string) error) {
	if tell("") != nil {
		return
	}
	ticker := time.NewTicker(followInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now, exists := s.again(t)
		if !exists {
			return
		}
		text, err := s.logOf(now)
		if err != nil {
			return
		}
		if text != known {
			// A log that was replaced is sent from its beginning.
			more := text
			if strings.HasPrefix(text, known) {
				more = text[len(known):]
			}
			if tell(more) != nil {
				return
			}
			known = text
		}
		if now.status.State.Running == nil {
			return
		}
	}
}

// again returns the container as it is now.
func (s *Server) again(t target) (target, bool) {
	pod, err := s.pods.Pods(t.pod.Namespace).Get(t.pod.Name)
	if err != nil || pod.UID != t.pod.UID {
		return t, false
	}
	for i := range pod.Status.ContainerStatuses {
		if status := &pod.Status.ContainerStatuses[i]; status.Name == t.container {
			return target{pod: pod, container: t.container, status: status}, true
		}
	}
	return t, false
}

// excerpt returns the part of a log that was asked for. All lines are as old as the container.
func (o logOptions) excerpt(text string, started time.Time) string {
	if started.Before(o.since) {
		return ""
	}
	if o.tail != nil {
		lines := strings.SplitAfter(text, "\n")
		if len(lines) > 0 && lines[len(lines)-1] == "" {
			lines = lines[:len(lines)-1]
		}
		text = strings.Join(lines[max(0, len(lines)-int(min(*o.tail, int64(len(lines))))):], "")
	}
	return o.stamped(text, started)
}

// stamped puts the time before each line if it was asked for.
func (o logOptions) stamped(text string, at time.Time) string {
	if !o.timestamps || text == "" {
		return text
	}
	var stamped strings.Builder
	for line := range strings.Lines(text) {
		stamped.WriteString(at.UTC().Format(time.RFC3339Nano) + " " + line)
	}
	return stamped.String()
}

// ended returns a text whose last line has an end.
func ended(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}

// limitedWriter drops what exceeds a limit.
type limitedWriter struct {
	out  io.Writer
	left int64
}

func (w *limitedWriter) Write(data []byte) (int, error) {
	kept := data[:min(int64(len(data)), w.left)]
	w.left -= int64(len(kept))
	if _, err := w.out.Write(kept); err != nil {
		return 0, err
	}
	if len(kept) < len(data) {
		return len(kept), io.ErrShortWrite
	}
	return len(data), nil
}
