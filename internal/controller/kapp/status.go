// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package kapp

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	kappv1 "github.com/opdock/opdock/api/kapp/v1"
	"github.com/opdock/opdock/internal/flow"
)

// Limits of the schema.
const (
	maxRows          = 60
	maxRowName       = 40
	maxRowMessage    = 32768
	maxStalledShown  = 5
	ellipsisInBounds = "…"
)

// setStatus adds a row for each component, in the order of the spec, and for each one that is being
// deleted.
func setStatus(s *scope) {
	status := &s.kapp.Status
	status.Components = nil
	status.ComponentCount = int32(len(s.kapp.Spec.Components)) //nolint:gosec // the schema allows 30
	status.ReadyComponentCount = 0
	rows := map[string]kappv1.ComponentStatus{}
	for _, p := range s.parts {
		rows[p.component.Name] = p.row()
		if p.state == kappv1.ComponentReady {
			status.ReadyComponentCount++
		}
	}
	for i := range s.kapp.Spec.Components {
		if row, ok := rows[s.kapp.Spec.Components[i].Name]; ok {
			addRow(status, row)
		}
	}
	for _, object := range s.doomed {
		if _, has := rows[object.component]; !has {
			rows[object.component] = kappv1.ComponentStatus{}
			addRow(status, object.row())
		}
	}
}

// addRow omits values that would make the server refuse the whole status.
func addRow(status *kappv1.KAPPStatus, row kappv1.ComponentStatus) {
	if len(status.Components) < maxRows && row.Name != "" && len(row.Name) <= maxRowName {
		row.Message = shortened(row.Message, maxRowMessage)
		status.Components = append(status.Components, row)
	}
}

func shortened(text string, length int) string {
	if runes := []rune(text); len(runes) > length {
		return string(runes[:length-1]) + ellipsisInBounds
	}
	return text
}

func (p *part) row() kappv1.ComponentStatus {
	row := kappv1.ComponentStatus{Name: p.component.Name, State: p.state, WaitingFor: p.waitingFor, Message: p.message}
	if p.resource != nil {
		p.resource.describe(&row)
	}
	return row
}

func (d *doomed) row() kappv1.ComponentStatus {
	row := kappv1.ComponentStatus{Name: d.component, State: kappv1.ComponentDeleting, Message: d.message}
	d.describe(&row)
	return row
}

func (r resource) describe(row *kappv1.ComponentStatus) {
	row.APIVersion, row.Kind, row.ResourceName = r.kind.GroupVersion().String(), r.kind.Kind, r.name
}

// verdict combines the outcomes of all components. It requeues as early as any of them.
func verdict(s *scope) error {
	err := combined(s)
	for _, p := range s.parts {
		err = flow.Within(p.lookAgain, err)
	}
	return err
}

func combined(s *scope) error {
	var (
		failures []error
		stalled  []*part
		retry    bool
		pending  []string
	)
	for _, p := range s.parts {
		if p.failure != nil {
			failures = append(failures, fmt.Errorf("component %s: %w", p.component.Name, p.failure))
		}
		switch p.state {
		case kappv1.ComponentReady:
		case kappv1.ComponentStalled:
			stalled = append(stalled, p)
			retry = retry || p.retry
		default:
			pending = append(pending, p.component.Name)
		}
	}
	switch {
	case len(failures) > 0:
		return errors.Join(failures...)
	case retry:
		return flow.StalledRetrying(stalled[0].reason, errors.New(explain(stalled)))
	case len(stalled) > 0:
		return flow.Stalled(stalled[0].reason, errors.New(explain(stalled)))
	case len(pending) > 0:
		return flow.Waiting("ComponentsNotReady", "%d of %d components are ready; waiting for %s",
			len(s.parts)-len(pending), len(s.parts), strings.Join(pending, ", "))
	case len(s.doomed) > 0:
		return flow.Waiting("Pruning", "%s", s.deleting())
	default:
		return nil
	}
}

// explain describes the problems of components. A problem that several share is named once.
func explain(stalled []*part) string {
	var messages []string
	names := map[string][]string{}
	for _, p := range stalled {
		if names[p.message] == nil {
			messages = append(messages, p.message)
		}
		names[p.message] = append(names[p.message], p.component.Name)
	}
	more := ""
	if len(messages) > maxStalledShown {
		more = fmt.Sprintf("; and %d more, see status.components", len(messages)-maxStalledShown)
		messages = messages[:maxStalledShown]
	}
	for i, message := range messages {
		messages[i] = strings.Join(slices.Sorted(slices.Values(names[message])), ", ") + ": " + message
	}
	return strings.Join(messages, "; ") + more
}
