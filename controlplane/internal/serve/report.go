// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/opdock/opdock/controlplane/internal/fault"
)

// Reporter reports the progress to the process that started this one, as JSON
// lines on a descriptor of their choice. The reader may go away at any time.
type Reporter struct {
	mu      sync.Mutex
	out     io.Writer
	started time.Time
	failed  bool // the first error is the cause; later ones are not reported
}

// NewReporter reports to out; nil discards it.
func NewReporter(out io.Writer, started time.Time) *Reporter {
	return &Reporter{out: out, started: started}
}

// line is one line of the report. Which fields are set depends on the event.
type line struct {
	Event      string       `json:"event"`
	Step       string       `json:"step,omitempty"`
	Message    string       `json:"message,omitempty"`
	Hint       string       `json:"hint,omitempty"`
	Reason     fault.Reason `json:"reason,omitempty"`
	Server     string       `json:"server,omitempty"`
	Kubeconfig string       `json:"kubeconfig,omitempty"`
	Version    string       `json:"version,omitempty"`
	PID        int          `json:"pid,omitempty"`
	ElapsedMS  int64        `json:"elapsedMs"`
}

// Progress reports that a step is done.
func (r *Reporter) Progress(step, message string) {
	r.write(line{Event: "progress", Step: step, Message: message})
}

// Ready reports that the cluster can be used.
func (r *Reporter) Ready(server, kubeconfig, version string) {
	r.write(line{Event: "ready", Server: server, Kubeconfig: kubeconfig, Version: version, PID: os.Getpid()})
}

// Error reports why the cluster did not start.
func (r *Reporter) Error(err error) {
	shown := &fault.Error{Reason: fault.Internal, Hint: "see the log of the control plane"}
	errors.As(err, &shown)
	r.mu.Lock()
	again := r.failed
	r.failed = true
	r.mu.Unlock()
	if again {
		return
	}
	r.write(line{Event: "error", Reason: shown.Reason, Message: err.Error(), Hint: shown.Hint})
}

func (r *Reporter) write(l line) {
	l.ElapsedMS = time.Since(r.started).Milliseconds()
	klog.V(1).InfoS("Report", "event", l.Event, "step", l.Step, "message", l.Message, "elapsedMs", l.ElapsedMS)
	if r.out == nil {
		return
	}
	data, err := json.Marshal(l)
	if err != nil {
		klog.ErrorS(err, "Encoding a report")
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_, _ = r.out.Write(append(data, '\n')) // the reader may be gone
}
