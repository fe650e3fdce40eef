// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package rehearse

import "strings"

// Result is what a rehearsal showed.
type Result struct {
	Acts []Outcome
	Idle Idle
	// Strangers is how many requests came without the credential of the operator.
	Strangers uint64
}

// Idle is what the operator did not do.
type Idle struct {
	// Untouched are the kinds of samples of which no object was reconciled, and All says that these are all kinds.
	Untouched []Kind `json:"untouched,omitempty"`
	All       bool   `json:"all,omitempty"`
	// Controllers have not started, and Lacking are kinds that the cluster does not have, both by the log of the operator.
	Controllers []string `json:"controllers,omitempty"`
	Lacking     []string `json:"lacking,omitempty"`
}

// Kind is a kind of samples.
type Kind struct {
	Group string `json:"group,omitempty"`
	Kind  string `json:"kind"`
}

// idle is called at the end, when the samples are deleted.
func (s *stage) idle() Idle {
	idle := Idle{Controllers: s.operator.Idle(), Lacking: s.operator.Lacking()}
	idle.Untouched, idle.All = s.untouched()
	return idle
}

// Unproven reports whether the rehearsal does not show which rights the operator needs, because it did not do its work. A kind that it
// does not reconcile while it reconciles others may have no controller, unless a kind is missing that this controller may wait for.
func (i *Idle) Unproven() bool {
	return i.All || len(i.Controllers) > 0 || len(i.Lacking) > 0 && len(i.Untouched) > 0
}

// Sentence describes what the operator did not do, without a full stop; empty if there is nothing to say.
func (i *Idle) Sentence() string {
	var parts []string
	if len(i.Untouched) > 0 {
		names := make([]string, 0, len(i.Untouched))
		for _, kind := range i.Untouched {
			names = append(names, kind.Kind)
		}
		parts = append(parts, "the operator reconciled no "+join(names, "or"))
	}
	switch names := join(i.Controllers, "and"); {
	case len(i.Controllers) > 1:
		parts = append(parts, "controllers "+names+" did not start")
	case names != "":
		parts = append(parts, "controller "+names+" did not start")
	case len(i.Controllers) == 1: // the log does not have its name
		parts = append(parts, "a controller did not start")
	}
	if len(i.Lacking) > 0 && i.Unproven() {
		parts = append(parts, "the cluster does not have "+join(i.Lacking, "and"))
	}
	return strings.Join(parts, "; ")
}

func join(names []string, last string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " " + last + " " + names[len(names)-1]
}
