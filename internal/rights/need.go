// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"fmt"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/opdock/opdock/internal/lens"
)

// Need is a right that an operator needs, and why.
type Need struct {
	Right
	// Namespaces are where it is proposed; empty for the whole cluster. Names are the only objects that it is proposed for;
	// empty for all.
	Namespaces []string `json:"namespaces,omitempty"`
	Names      []string `json:"names,omitempty"`
	// Why is the reason for it, besides its requests, and Part the part of a manager that needs it.
	Why  []string `json:"why,omitempty"`
	Part Part     `json:"part,omitempty"`
	// Implied means that no request shows it.
	Implied bool `json:"implied,omitempty"`
	// Refused means that all requests for it were refused, so nothing shows that the operator needs it.
	Refused bool `json:"refused,omitempty"`
	// Alternative means that another right allows the same. It is proposed only if it is granted.
	Alternative bool `json:"alternative,omitempty"`
	// GivenAway means that it is needed only to grant it to others. It is not proposed for an operator that may
	// escalate, or bind the role that grants it.
	GivenAway bool `json:"givenAway,omitempty"`
	// Granted is whether it is granted wherever it was used, and Proposed whether the proposal has it.
	Granted  bool     `json:"granted"`
	Proposed bool     `json:"proposed"`
	Evidence Evidence `json:"evidence"`

	// implied counts the writes that imply a right that is requested, too. They are not among its requests, but it must
	// reach the same places.
	implied Evidence
	// free counts the uses that need not be allowed, because the operator can give the right away without having it, and isFree
	// means that there are no others.
	free   Evidence
	isFree bool
	// bound means that a role that the operator binds grants it.
	bound bool
	// mustBind means that it is the right to bind roles, and that it is not known what all of them grant, or that the operator may
	// write them without having what they grant. unlisted means that it
	// is the right to escalate, and that a role grants more than is known.
	mustBind, unlisted bool
	// mayBindOthers means that it is the right to bind roles whose names come from custom resources.
	mayBindOthers bool
}

// reach is where a right is needed: the places of all requests, and of all writes that imply it.
func (n *Need) reach() *Evidence {
	all := n.Evidence
	all.add(&n.implied)
	return &all
}

// places are those at which a right is needed.
func (n *Need) places() []place {
	at := n.Evidence.places(n.Right)
	if n.implied.reachesSomething() {
		at = append(at, n.implied.places(n.Right)...)
	}
	return at
}

// isReachedBy reports whether a rule applies at one of the places. Recordings do not have the names of the roles that need escalate.
func (n *Need) isReachedBy(rule *Rule) bool {
	at := *rule
	if n.escalates() {
		at = rule.forAllNames()
	}
	return slices.ContainsFunc(n.places(), func(used place) bool { return at.reaches(n.Right, used) })
}

func (n *Need) because(why string) {
	if why != "" && !slices.Contains(n.Why, why) {
		n.Why = append(n.Why, why)
	}
}

// needs returns the requested rights, and those that they imply.
func (o *Observed) needs(s *scopes) []*Need {
	byRight := map[Right]*Need{}
	var all []*Need
	need := func(right Right) *Need {
		if byRight[right] == nil {
			byRight[right] = &Need{Right: right, Part: managerRights[right], Refused: true, Implied: true, GivenAway: true}
			all = append(all, byRight[right])
		}
		return byRight[right]
	}
	for _, used := range o.uses {
		if everybodys(used.Right) != "" || s.isNeedless(used) {
			continue
		}
		n := need(used.Right)
		evidence := s.normal(used)
		if used.implied == "" { // such a use comes first
			n.Implied, n.GivenAway = false, false
			n.Evidence.add(&evidence)
			continue
		}
		n.because(used.implied)
		n.Alternative = n.Implied && isAlternative(used.Right)
		n.mustBind = n.mustBind || used.implied == lens.BindsUnknown || used.implied == lens.BindsWritten && s.escalates
		n.unlisted = n.unlisted || used.implied == lens.WritesUnknown
		n.bound = n.bound || used.implied == lens.Bound
		n.GivenAway = n.GivenAway && (used.implied == lens.GivenAway || used.implied == lens.Bound)
		switch {
		case s.isFree(used):
			n.free.add(&evidence)
		case n.Implied:
			n.Evidence.add(&evidence) // the requests that imply it
		case !s.onlyRefused(&evidence):
			n.implied.add(&evidence)
		}
	}
	for _, n := range all {
		if n.GivenAway && n.Evidence.Requests == 0 {
			n.Evidence, n.isFree = n.free, true
		}
		everything := n.reach()
		n.Refused = everything.Refused == everything.Requests
	}
	for _, n := range slices.Clone(all) {
		o.alongWith(n, s, need)
	}
	o.locks(s, need)
	for _, n := range all {
		if managerRights[n.Right] != "" {
			n.because(n.Part.why())
		}
		n.Namespaces = s.namespaces(n)
		n.Names = s.names(n)
	}
	slices.SortFunc(all, func(a, b *Need) int { return compareRights(a.Right, b.Right) })
	return all
}

// isAlternative is true for the rights to give away what one does not have: without them, one has to have it.
func isAlternative(right Right) bool {
	return right.Group == rbacv1.GroupName && (right.Verb == "escalate" || right.Verb == "bind")
}

// escalates is true for the right to write roles that grant more than their writer has.
func (r Right) escalates() bool { return r.Verb == "escalate" && isAlternative(r) }

// alongWith adds the rights that usually come with a certain right, even if the recordings do not show them.
func (o *Observed) alongWith(n *Need, s *scopes, need func(Right) *Need) {
	along := func(right Right, why string) {
		other, same := need(right), n.Evidence
		same.Requests, same.Refused = 0, 0
		same.First, same.Last = time.Time{}, time.Time{}
		same.Recording, same.Request, same.Reconcile = "", 0, nil
		if !namesCount(right) || !namesCount(n.Right) {
			same.Names, same.Unnamed = nil, 1
		}
		switch {
		case other.isFree, other.Implied && (other.Evidence.Requests == 0 || s.onlyRefused(&other.Evidence) && !n.Refused):
			other.Evidence, other.Refused = same, n.Refused // a write that was refused does not show that it is needed, but this does
		case other.Implied && !n.Refused:
			other.implied.add(&same)
			other.Refused = false
		}
		other.GivenAway, other.isFree = false, false
		other.because(why)
	}
	switch {
	case n.Implied && n.Evidence.Requests > 0:
		// What a write implies brings nothing along.
	case n.Verb == "watch" && !strings.Contains(n.Resource, "/"):
		n.because(o.informer(n.Right))
		along(Right{Verb: "list", Group: n.Group, Resource: n.Resource},
			"an informer lists before it watches; only newer API servers stream the list as part of the watch")
	case n.Part == LeaderElection || n.Part == EventRecorder:
		for right, part := range managerRights {
			if part == n.Part && right.Group == n.Group && right != n.Right {
				along(right, part.why())
			}
		}
	}
}

// informer explains why something is watched.
func (o *Observed) informer(right Right) string {
	count := o.cachedReads(schema.GroupResource{Group: right.Group, Resource: right.Resource})
	switch count {
	case 0:
		return "an informer: reads from its cache need list and watch, not get"
	case 1:
		return "an informer: 1 read was answered from its cache, which needs list and watch, not get"
	default:
		return fmt.Sprintf("an informer: %d reads were answered from its cache, which needs list and watch, not get", count)
	}
}
