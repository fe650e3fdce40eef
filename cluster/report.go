// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// report is one line on the control plane's report pipe.
type report struct {
	Event string `json:"event"` // progress, ready or error

	Step      string `json:"step"`
	Message   string `json:"message"`
	ElapsedMs int64  `json:"elapsedMs"`

	Kubeconfig string `json:"kubeconfig"`

	Reason Reason `json:"reason"`
	Hint   string `json:"hint"`
}

func (r report) elapsed() time.Duration { return time.Duration(r.ElapsedMs) * time.Millisecond }

// readReports sends reports until the pipe ends. It skips lines that it does not understand, because a
// newer control plane may send more.
func readReports(pipe io.Reader, stop <-chan struct{}) <-chan report {
	reports := make(chan report)
	go func() {
		defer close(reports)
		lines := bufio.NewScanner(pipe)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var r report
			if json.Unmarshal(lines.Bytes(), &r) != nil {
				continue
			}
			select {
			case reports <- r:
			case <-stop:
				return
			}
		}
	}()
	return reports
}

// awaitReady follows the reports until the control plane is ready. In any other case the process has
// ended when it returns.
func (p *process) awaitReady(ctx context.Context, o Options) (report, error) {
	stop := make(chan struct{})
	defer p.report.Close()
	defer close(stop)
	reports := readReports(p.report, stop)
	doing := "waiting for its first report"
	for {
		select {
		case r, more := <-reports:
			if !more {
				return report{}, p.endedEarly(o.Name)
			}
			switch r.Event {
			case "progress":
				doing = fmt.Sprintf("after %q", r.Message)
				o.progress(Progress{Step: r.Step, Message: r.Message, Elapsed: r.elapsed()})
			case "ready":
				return r, nil
			case "error":
				p.awaitExit(exitGrace)
				if r.Reason == ReasonInternal {
					// The control plane does not know where its log goes.
					r.Hint = strings.TrimPrefix(p.log.hint(), "; ")
				}
				return report{}, &StartError{Reason: r.Reason, Message: r.Message, Hint: r.Hint}
			}
		case <-ctx.Done():
			return report{}, p.abandon(ctx, o.Name, doing)
		}
	}
}

// abandon stops the process for a caller that no longer waits.
func (p *process) abandon(ctx context.Context, name, doing string) error {
	waited := time.Since(p.began).Round(time.Millisecond)
	p.giveUp(abandonTimeout)
	err := ctx.Err()
	if cause := context.Cause(ctx); !errors.Is(err, cause) {
		err = fmt.Errorf("%w (%w)", err, cause)
	}
	return fmt.Errorf("starting %s: canceled after %v, %s: %w%s", title(name), waited, doing, err, p.log.hint())
}

// endedEarly is for a process that closed its end of the report pipe without a last word.
func (p *process) endedEarly(name string) error {
	p.awaitExit(exitGrace)
	how := "exit status 0"
	if p.exit != nil {
		how = p.exit.Error()
	}
	return fmt.Errorf("starting %s: the control plane exited before it was ready: %s%s", title(name), how, p.log.excerpt())
}
