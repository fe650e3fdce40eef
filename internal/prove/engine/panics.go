// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Marks say which reconciles panic. An operator without marks recovers from a panic as well, and so do its webhooks. Then only the
// log shows it.

// panicLog collects from the log of an operator the panics that it has recovered from.
type panicLog struct {
	mutex sync.Mutex
	seen  []string
}

// mostPanics is how many panics are kept: one is enough for a finding.
const mostPanics = 10

// recovered are the lines of Kubernetes' libraries and of net/http about a panic, with its value.
var recovered = []*regexp.Regexp{
	regexp.MustCompile(`Observed a panic["\s].*?\bpanic"?[:=]\s*"((?:[^"\\]|\\.)*)"`), // structured
	regexp.MustCompile(`Observed a panic[^:"]*: (.*)`),
	regexp.MustCompile(`(Observed a panic)`),
	regexp.MustCompile(`panic: (.*?) \[recovered\]`),
	regexp.MustCompile(`http: panic serving \S+: (.*)`),
}

// recoveredIn returns the value of a panic that a line of a log is about.
func recoveredIn(line string) (value string, found bool) {
	for _, one := range recovered {
		match := one.FindStringSubmatch(line)
		if match == nil {
			continue
		}
		if text, err := strconv.Unquote(`"` + match[1] + `"`); err == nil {
			return text, true
		}
		return match[1], true
	}
	return "", false
}

// line reads a line. One panic leads to several: it is logged, and then again as the error of a reconcile.
func (l *panicLog) line(text string) {
	value, found := recoveredIn(text)
	if !found {
		return
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	again := slices.ContainsFunc(l.seen, func(one string) bool { return strings.Contains(one, value) || strings.Contains(value, one) })
	if !again && len(l.seen) < mostPanics {
		l.seen = append(l.seen, value)
	}
}

// take returns the panics since the last time.
func (l *panicLog) take() []string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	seen := l.seen
	l.seen = nil
	return seen
}

// orPanicked turns the error of a request into findings if a webhook of the operator has panicked or ended. The error may contain the
// panic. If it does not, the log does, which may come a little later.
func (r *run) orPanicked(ctx context.Context, step int, wrong []*Observation, err error) ([]*Observation, error) {
	if err == nil || !strings.Contains(err.Error(), "webhook") {
		return wrong, err
	}
	r.log.line(err.Error())
	if _, dead := r.settle(ctx); dead != nil {
		return wrong, dead
	}
	found := r.healthOf(step, rested{})
	if len(found) == 0 {
		return wrong, err
	}
	return append(wrong, found...), nil
}

// panicsOf turns panics of marked reconciles into observations. Those in the log count only if they cannot be the same: marks show
// none in this run, and the operator has not exited, which is a finding of its own.
func (r *run) panicsOf(step int, marked []string) (wrong []*Observation) {
	logged := r.log.take()
	for _, text := range slices.Compact(marked) {
		wrong = append(wrong, &Observation{Step: step, Verdict: "panic", Severity: high, Title: "The operator panics while it reconciles", Want: "no panic", Got: firstLine(text)})
	}
	if r.markedPanic = r.markedPanic || len(marked) > 0; r.markedPanic || len(r.exits) > 0 {
		return wrong
	}
	for _, text := range logged {
		wrong = append(wrong, &Observation{Step: step, Verdict: "panic", Severity: high, Title: "The operator panics and recovers", Want: "no panic", Got: shortened(firstLine(text))})
	}
	return wrong
}
