// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/opdock/opdock/internal/lens"
)

// Right is something that RBAC can grant. It is about resources, or about a URL.
type Right struct {
	Verb  string `json:"verb"`
	Group string `json:"group"`
	// Resource may have a subresource, as in pods/status.
	Resource string `json:"resource,omitempty"`
	URL      string `json:"url,omitempty"`
}

// Object is what the right is about, as users of kubectl write it: deployments.apps/status.
func (r Right) Object() string {
	if r.URL != "" {
		return r.URL
	}
	base, subresource, has := strings.Cut(r.Resource, "/")
	if r.Group != "" {
		base += "." + r.Group
	}
	if has {
		base += "/" + subresource
	}
	return base
}

func compareRights(a, b Right) int {
	return cmp.Or(cmp.Compare(a.URL, b.URL), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource), compareVerbs(a.Verb, b.Verb))
}

// verbOrder is the order in which verbs are usually written.
var verbOrder = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}

func compareVerbs(a, b string) int {
	place := func(verb string) int {
		if i := slices.Index(verbOrder, verb); i >= 0 {
			return i
		}
		return len(verbOrder)
	}
	return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a, b))
}

// Evidence is what shows that a right was used.
type Evidence struct {
	// Requests is how many asked for it, and Refused how many of those were answered with Forbidden.
	Requests uint64    `json:"requests"`
	Refused  uint64    `json:"refused,omitempty"`
	First    time.Time `json:"first,omitzero"`
	Last     time.Time `json:"last,omitzero"`
	// Recording has the latest request, Request is its ID there, and Reconcile sent it.
	Recording string     `json:"recording,omitempty"`
	Request   uint64     `json:"request,omitempty"`
	Reconcile *Reconcile `json:"reconcile,omitempty"`
	// ClusterWide is how many named no namespace, and Namespaces and Names count those that named one. Unnamed is how many
	// named no object. With Many there were more than are counted.
	ClusterWide uint64            `json:"clusterWide,omitempty"`
	Namespaces  map[string]uint64 `json:"namespaces,omitempty"`
	Names       map[string]uint64 `json:"names,omitempty"`
	Unnamed     uint64            `json:"unnamed,omitempty"`
	Many        bool              `json:"many,omitempty"`

	// refusedAt are the places of the requests that were refused.
	refusedAt lens.Places
	// elsewhere counts refused requests by namespace, empty for the whole cluster, where none was answered.
	elsewhere map[string]uint64
}

func (e *Evidence) add(other *Evidence) {
	if other.Last.After(e.Last) || e.Requests == 0 {
		e.Recording, e.Request, e.Reconcile = other.Recording, other.Request, other.Reconcile
	}
	if e.First.IsZero() || !other.First.IsZero() && other.First.Before(e.First) {
		e.First = other.First
	}
	e.Last = latest(e.Last, other.Last)
	e.Requests += other.Requests
	e.Refused += other.Refused
	e.ClusterWide += other.ClusterWide
	e.Unnamed += other.Unnamed
	e.Many = e.Many || other.Many
	e.Namespaces, e.Names = sum(e.Namespaces, other.Namespaces), sum(e.Names, other.Names)
	e.elsewhere = sum(e.elsewhere, other.elsewhere)
	e.refusedAt = lens.Places{
		ClusterWide: e.refusedAt.ClusterWide + other.refusedAt.ClusterWide, Unnamed: e.refusedAt.Unnamed + other.refusedAt.Unnamed,
		Namespaces: sum(e.refusedAt.Namespaces, other.refusedAt.Namespaces), Names: sum(e.refusedAt.Names, other.refusedAt.Names),
	}
}

// reachesSomething reports whether there is a place.
func (e *Evidence) reachesSomething() bool {
	return e.ClusterWide > 0 || e.Unnamed > 0 || len(e.Namespaces) > 0 || len(e.Names) > 0
}

// dropRefused drops the places of refused requests if other requests were answered: a refused request does not show that
// the right is needed in that place.
func (e *Evidence) dropRefused() {
	if e.Refused == e.Requests {
		return
	}
	e.elsewhere = difference(e.refusedAt.Namespaces, nil)
	maps.DeleteFunc(e.elsewhere, func(namespace string, refused uint64) bool { return e.Namespaces[namespace] > refused })
	if refused := e.refusedAt.ClusterWide; refused > 0 && refused >= e.ClusterWide {
		e.elsewhere = sum(e.elsewhere, map[string]uint64{"": refused})
	}
	e.ClusterWide -= min(e.ClusterWide, e.refusedAt.ClusterWide)
	e.Unnamed -= min(e.Unnamed, e.refusedAt.Unnamed)
	e.Namespaces, e.Names = difference(e.Namespaces, e.refusedAt.Namespaces), difference(e.Names, e.refusedAt.Names)
	e.refusedAt = lens.Places{}
}

func difference(all, without map[string]uint64) map[string]uint64 {
	left := map[string]uint64{}
	for name, count := range all {
		if count > without[name] {
			left[name] = count - without[name]
		}
	}
	if len(left) == 0 {
		return nil
	}
	return left
}

func sum(a, b map[string]uint64) map[string]uint64 {
	if len(a)+len(b) == 0 {
		return nil
	}
	all := map[string]uint64{}
	maps.Copy(all, a)
	for name, count := range b {
		all[name] += count
	}
	return all
}

// use is how a right was used. An implied one no request asks for: the body of a write does.
type use struct {
	Right
	Evidence
	implied string
}

// Observed is what several recordings show together.
type Observed struct {
	Recordings []*Recording
	// Identity is whose rights the operator had in the latest recording.
	Identity string
	// Since and Last are when the first event happened, and the last.
	Since, Last time.Time
	// Lost is how many events the lens could not record, and Missing how many are not in the files: those were too large, or the
	// disk was full.
	Lost, Missing uint64

	// asOthers is how many requests were sent as other users.
	asOthers uint64

	uses  []*use
	facts facts
}

// Merge adds recordings up.
func Merge(recordings []*Recording) *Observed {
	o := &Observed{Recordings: slices.Clone(recordings), facts: newFacts()}
	slices.SortStableFunc(o.Recordings, func(a, b *Recording) int { return a.Header.Began.Compare(b.Header.Began) })
	type key struct {
		Right
		implied string
	}
	byRight := map[key]*use{}
	for _, r := range o.Recordings {
		if r.Header.Identity != "" {
			o.Identity = r.Header.Identity
		}
		if o.Since.IsZero() || r.Totals.Since.Before(o.Since) && !r.Totals.Since.IsZero() {
			o.Since = r.Totals.Since
		}
		o.Last = latest(o.Last, r.Totals.Last)
		o.Lost += r.Totals.Lost
		o.Missing += r.Missing
		for _, counted := range r.Totals.Uses {
			o.facts.makes(counted)
			if counted.As {
				o.asOthers += counted.Count
				continue // it needed the rights of that user
			}
			one := r.use(counted)
			k := key{one.Right, lens.ReasonClass(one.implied)}
			if known := byRight[k]; known != nil {
				known.add(&one.Evidence)
				known.implied = cmp.Or(one.implied, known.implied)
				continue
			}
			byRight[k] = one
			o.uses = append(o.uses, one)
		}
		for _, name := range r.Totals.Mentioned {
			o.facts.mentioned[name] = true
		}
		o.facts.add(&r.facts)
	}
	slices.SortStableFunc(o.uses, func(a, b *use) int {
		return cmp.Or(compareRights(a.Right, b.Right), cmp.Compare(a.implied, b.implied))
	})
	return o
}

// use is what a recording counts of one kind of request, in the words of RBAC.
func (r *Recording) use(counted *lens.Use) *use {
	one := &use{Right: Right{Verb: counted.Verb, Group: counted.Group, Resource: counted.Resource, URL: counted.Path}, implied: counted.Implied}
	if counted.Subresource != "" {
		one.Resource += "/" + counted.Subresource
	}
	if one.Verb == "apply" {
		one.Verb = "patch"
	}
	one.Evidence = Evidence{
		Requests: counted.Count, Refused: counted.Forbidden, First: counted.First, Last: counted.Last, Recording: r.Name, Request: counted.Example,
		ClusterWide: counted.ClusterWide, Namespaces: sum(counted.Namespaces, nil), Names: sum(counted.Names, nil), Unnamed: counted.Unnamed, Many: counted.Many,
	}
	switch refused := counted.ForbiddenAt; {
	case refused != nil:
		one.refusedAt = *refused.Clone()
	case counted.Forbidden == counted.Count:
		one.refusedAt = lens.Places{ClusterWide: one.ClusterWide, Namespaces: one.Namespaces, Names: one.Names, Unnamed: one.Unnamed}
	}
	if counted.Reconcile != 0 {
		reconcile, known := r.facts.reconciles[counted.Reconcile]
		if !known {
			reconcile = Reconcile{ID: counted.Reconcile}
		}
		one.Reconcile = &reconcile
	}
	return one
}

// add takes what does not belong to one recording alone.
func (f *facts) add(other *facts) {
	maps.Copy(f.subjects, other.subjects)
	maps.Copy(f.subjectNamespaces, other.subjectNamespaces)
	maps.Copy(f.madeNamespaces, other.madeNamespaces)
	maps.Copy(f.inNamespaces, other.inNamespaces)
	maps.Copy(f.inNone, other.inNone)
	maps.Copy(f.resources, other.resources)
	maps.Copy(f.locks, other.locks)
	maps.Copy(f.clusterRoles, other.clusterRoles)
	for kind, count := range other.cached {
		f.cached[kind] += count
	}
}

// makes takes the namespaces that requests create or delete. Totals have them all, unlike events.
func (f *facts) makes(counted *lens.Use) {
	isNamespace := counted.Group == "" && counted.Resource == "namespaces" && counted.Subresource == ""
	if !isNamespace || counted.Forbidden == counted.Count || !slices.Contains([]string{"create", "apply", "delete"}, counted.Verb) {
		return
	}
	for name := range counted.Names {
		f.madeNamespaces[name] = true
	}
}

// cachedReads is how many reads of a resource a cache has answered.
func (o *Observed) cachedReads(resource schema.GroupResource) (count uint64) {
	for kind, reads := range o.facts.cached {
		if o.facts.resources[kind] == resource {
			count += reads
		}
	}
	return count
}
