// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"
)

// log logs a reconcile, and the loop that it is part of.
func (r *Recorder) log(p *pass) {
	record := p.record
	if logger := r.options.Logger.V(1); logger.Enabled() {
		causes := make([]string, len(record.Causes))
		for i := range record.Causes {
			causes[i] = record.Causes[i].String()
		}
		logger.Info("Reconciled", "record", record.ID, "controller", record.Controller, "object", describeObject(&record.Object),
			"causes", causes, "folded", record.Folded, "waited", record.Waited.String(), "took", record.Duration.String(),
			"writes", record.Written, "outcome", record.Outcome, "findings", record.found(),
			"reconcilesPerChange", p.amplification.reconciles, "writesPerChange", p.amplification.writes)
	}
	for i := range record.Findings {
		f := &record.Findings[i]
		if f.Type != Loop || !r.loops.isNew(p.object, f.Path, record.Start, r.options.LoopWindow) {
			continue
		}
		r.options.Logger.Info("Loop", "record", record.ID, "controller", record.Controller, "object", describeObject(&record.Object),
			"message", f.Message, "field", f.Path, "writers", orSomebody(managers(f.Writers)))
	}
}

// found names the findings.
func (r *Record) found() []string {
	types := make([]string, 0, len(r.Findings))
	for i := range r.Findings {
		types = append(types, string(r.Findings[i].Type))
	}
	return types
}

// String describes the cause in a few words.
func (c *Cause) String() string {
	var text strings.Builder
	text.WriteString(string(c.Type))
	if c.Object != nil {
		text.WriteString(" " + describeObject(c.Object))
	}
	const few = 3
	for i, change := range c.Changes {
		if i == few {
			fmt.Fprintf(&text, " and %d more", c.Changed-few)
			break
		}
		fmt.Fprintf(&text, " %s %s→%s", change.Path, change.Old, change.New)
	}
	if by := managers(c.By); by != "" || c.HasUnknownWriter() {
		text.WriteString(" by " + orSomebody(by))
	}
	if c.Write != nil {
		fmt.Fprintf(&text, " (write of record %d)", c.Write.Record)
	}
	if c.Repeated {
		text.WriteString(" (seen before)")
	}
	return text.String()
}

// HasUnknownWriter reports whether an object was changed and neither managed fields
// nor a write of this recorder name the writer.
func (c *Cause) HasUnknownWriter() bool {
	return c.Type == Updated && c.Changed > 0 && len(c.By) == 0 && c.Write == nil
}

// loops remembers which loops were logged, to log each at most once a minute.
type loops struct {
	mutex sync.Mutex
	told  map[toldLoop]time.Time
}

type toldLoop struct {
	object objectKey
	path   string
}

// isNew reports whether to log a loop. If there are too many, new ones are not logged.
func (l *loops) isNew(object objectKey, path string, now time.Time, window time.Duration) bool {
	const enough = 1024
	l.mutex.Lock()
	defer l.mutex.Unlock()
	key := toldLoop{object, path}
	if last, ok := l.told[key]; ok && now.Sub(last) < window {
		return false
	}
	if len(l.told) >= enough {
		maps.DeleteFunc(l.told, func(_ toldLoop, last time.Time) bool { return now.Sub(last) >= window })
	}
	if len(l.told) >= enough {
		return false
	}
	if l.told == nil {
		l.told = map[toldLoop]time.Time{}
	}
	key.path = strings.Clone(key.path)
	l.told[key] = now
	return true
}
