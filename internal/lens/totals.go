// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
)

const (
	// maxNames is how many names and namespaces are counted apart for one kind of request.
	maxNames = 64
	// maxUses bounds how many kinds of request are counted; an operator has some dozens.
	maxUses = 4 << 10
	// maxHot bounds for how many objects writes are counted, and of how many it is known that their names were generated.
	maxHot = 8 << 10
)

// Totals counts the events of a lens. Unlike events, counts are never dropped.
type Totals struct {
	Since time.Time `json:"since,omitzero"`
	Last  time.Time `json:"last,omitzero"`
	// Seq is the number of the last event that is counted. A recording that was shortened has events after its totals that these
	// count already.
	Seq uint64 `json:"seq,omitempty"`
	// Uses are sorted by group, resource, subresource and verb.
	Uses []*Use `json:"uses"`
	// Deliveries is the number of watch events, Unchanged how many of them changed nothing, and Echoes how many had
	// versions that the operator wrote itself.
	Deliveries uint64 `json:"deliveries"`
	Unchanged  uint64 `json:"unchanged"`
	Echoes     uint64 `json:"echoes"`
	Lost       uint64 `json:"lost,omitempty"`
	// Hot are the objects that were written most, the first of them the most often.
	Hot []Hot `json:"hot,omitempty"`
	// Mentioned are the names and namespaces in requests that contain a value from a custom resource.
	Mentioned []string `json:"mentioned,omitempty"`

	byUse map[useKey]*Use
	byHot map[objectKey]uint64
	// generated are objects whose names are others the next time. Only a create, or an object, shows that.
	generated map[objectKey]bool
	mentioned map[string]bool
}

// Use is how often something was requested.
type Use struct {
	Verb        string `json:"verb"`
	Group       string `json:"group,omitempty"`
	Resource    string `json:"resource,omitempty"`
	Subresource string `json:"subresource,omitempty"`
	Path        string `json:"path,omitempty"`
	// Implied is the reason why a right is needed that no request shows; such rights have only a count.
	Implied string `json:"implied,omitempty"`
	// As means that the requests were sent as another user: they needed the rights of that user.
	As bool `json:"as,omitempty"`

	Count uint64 `json:"count"`
	// Forbidden, Conflicts and Failed are how many were refused: for lack of a right, by a conflict, or otherwise.
	Forbidden uint64 `json:"forbidden,omitempty"`
	Conflicts uint64 `json:"conflicts,omitempty"`
	Failed    uint64 `json:"failed,omitempty"`
	// NoChange is the number of writes that changed nothing, and Unbounded the number of lists that had neither a
	// limit nor a version that allows the API server to use its cache.
	NoChange  uint64 `json:"noChange,omitempty"`
	Unbounded uint64 `json:"unbounded,omitempty"`
	BytesOut  int64  `json:"bytesOut,omitempty"`
	// ClusterWide is the number of requests without a namespace. Namespaces and Names count the others; Many means
	// that there were more names than are counted. A request for an object with a generated name is Unnamed.
	ClusterWide uint64            `json:"clusterWide,omitempty"`
	Namespaces  map[string]uint64 `json:"namespaces,omitempty"`
	Names       map[string]uint64 `json:"names,omitempty"`
	Unnamed     uint64            `json:"unnamed,omitempty"`
	Many        bool              `json:"many,omitempty"`
	// ForbiddenAt are the places of the requests that were refused for lack of a right. The counts above include them.
	ForbiddenAt *Places   `json:"forbiddenAt,omitempty"`
	First       time.Time `json:"first"`
	Last        time.Time `json:"last"`
	// Example is the ID of the latest request, and Reconcile of the reconcile that sent it.
	Example   uint64 `json:"example,omitempty"`
	Reconcile uint64 `json:"reconcile,omitempty"`
}

// Places are where requests went, as in Use.
type Places struct {
	ClusterWide uint64            `json:"clusterWide,omitempty"`
	Namespaces  map[string]uint64 `json:"namespaces,omitempty"`
	Names       map[string]uint64 `json:"names,omitempty"`
	Unnamed     uint64            `json:"unnamed,omitempty"`
}

// Clone returns a copy, nil if there is none.
func (p *Places) Clone() *Places {
	if p == nil {
		return nil
	}
	return &Places{p.ClusterWide, maps.Clone(p.Namespaces), maps.Clone(p.Names), p.Unnamed}
}

// Hot is an object and how often it was written.
type Hot struct {
	Group     string `json:"group,omitempty"`
	Resource  string `json:"resource"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Writes    uint64 `json:"writes"`
}

type useKey struct {
	verb, group, resource, subresource, path string
	// implied is a class of reasons. Reasons that are judged differently must not replace each other.
	implied string
	as      bool
}

func newTotals() Totals {
	return Totals{byUse: map[useKey]*Use{}, byHot: map[objectKey]uint64{}, generated: map[objectKey]bool{}, mentioned: map[string]bool{}}
}

func (t *Totals) add(e *Event) {
	switch {
	case e.Request != nil:
		t.learn(e.Request.Resource, e.Request.Object)
	case e.Delivery != nil:
		t.learn(e.Delivery.Resource, e.Delivery.Object)
	}
	if e.Seq != 0 && e.Seq <= t.Seq {
		return
	}
	t.Seq = max(t.Seq, e.Seq)
	if t.Since.IsZero() {
		t.Since = e.At
	}
	if e.At.After(t.Last) { // a request is reported at its end, with its start time
		t.Last = e.At
	}
	switch {
	case e.Request != nil && !isRepeated(e.Request):
		t.request(e.At, e.Request)
	case e.Delivery != nil && e.Delivery.Type != "BOOKMARK":
		t.Deliveries++
		if e.Delivery.Change != nil && e.Delivery.Change.None {
			t.Unchanged++
		}
		if e.Delivery.Write != 0 {
			t.Echoes++
		}
	case e.Lost != nil:
		t.Lost += e.Lost.Events
	}
}

// learn remembers an object with a generated name.
func (t *Totals) learn(resource Resource, object *Object) {
	if object != nil && object.Generated && len(t.generated) < maxHot {
		t.generated[objectKey{resource.Group, resource.Resource, object.Namespace, object.Name}] = true
	}
}

// place is the place that a request means, without a name that cannot be known before.
func (t *Totals) place(r Resource, query *Query) Resource {
	if r.Name == "" && query != nil {
		r.Name = selectedName(query.FieldSelector)
	}
	key := keyOf(r)
	if r.Group == rbacv1.GroupName && r.Resource == "clusterroles" {
		key.namespace = "" // the right to bind it is checked in the namespace of the binding
	}
	if t.generated[key] {
		r.Name = ""
	}
	return r
}

// isRepeated reports whether an event is the end of a watch, which was counted at its start.
func isRepeated(r *Request) bool { return r.Verb == "watch" && !r.Open && r.Status == http.StatusOK }

func (t *Totals) request(at time.Time, r *Request) {
	u := t.use(useKey{r.Verb, r.Resource.Group, r.Resource.Resource, r.Resource.Subresource, r.Path, "", r.As != ""}, at, r)
	if u == nil {
		return
	}
	place := t.place(r.Resource, r.Query)
	switch {
	case (r.lacksImplied() || r.lacksCreate()) && len(r.Implies) > 0:
		u.Failed++ // what it implies is forbidden
	case r.LacksRight():
		u.Forbidden++
		u.forbidden(place)
	case r.Status == http.StatusConflict && r.Reason != string(metav1.StatusReasonAlreadyExists):
		u.Conflicts++
	case r.Refused():
		u.Failed++
	}
	u.BytesOut += r.BytesOut
	if r.Delivered != 0 {
		t.Echoes++
	}
	if r.Change != nil && r.Change.None {
		u.NoChange++
	}
	if r.Verb == "list" && r.Query != nil && r.Query.Limit == 0 && r.Query.ResourceVersion == "" {
		u.Unbounded++
	}
	u.where(place)
	for _, name := range r.Mentioned {
		if len(t.mentioned) < maxHot {
			t.mentioned[name] = true
		}
	}
	if r.IsWrite() && !r.Refused() && r.Resource.Name != "" {
		key := keyOf(r.Resource)
		if _, counted := t.byHot[key]; counted || len(t.byHot) < maxHot {
			t.byHot[key]++
		}
	}
	for _, implied := range r.impliedOfSender() {
		place := t.place(implied.Resource, nil)
		if u := t.use(useKey{implied.Verb, place.Group, place.Resource, place.Subresource, implied.Path, ReasonClass(implied.Because), false}, at, r); u != nil {
			u.Implied = implied.Because
			u.where(place)
			if r.RefusedSender() || r.As == "" && r.lacksCreate() {
				u.Forbidden++
				u.forbidden(place)
			}
		}
	}
}

// use counts one more; nil if there are too many kinds of them.
func (t *Totals) use(key useKey, at time.Time, r *Request) *Use {
	u := t.byUse[key]
	if u == nil {
		if len(t.byUse) == maxUses {
			return nil
		}
		u = &Use{
			Verb: key.verb, Group: key.group, Resource: key.resource, Subresource: key.subresource, Path: key.path, As: key.as, First: at,
			Namespaces: map[string]uint64{}, Names: map[string]uint64{},
		}
		t.byUse[key] = u
	}
	u.Count++
	u.Last, u.Example, u.Reconcile = at, r.ID, r.Reconcile
	return u
}

// where counts which objects were meant.
func (u *Use) where(place Resource) {
	at := Places{u.ClusterWide, u.Namespaces, u.Names, u.Unnamed}
	u.Many = !at.count(place) || u.Many
	u.ClusterWide, u.Unnamed = at.ClusterWide, at.Unnamed
}

// forbidden counts which objects were meant by a request that was refused.
func (u *Use) forbidden(place Resource) {
	if u.ForbiddenAt == nil {
		u.ForbiddenAt = &Places{}
	}
	if u.ForbiddenAt.Namespaces == nil {
		u.ForbiddenAt.Namespaces = map[string]uint64{}
	}
	if u.ForbiddenAt.Names == nil {
		u.ForbiddenAt.Names = map[string]uint64{}
	}
	u.ForbiddenAt.count(place)
}

// count adds a place, and returns false if there are too many to count them apart.
func (p *Places) count(place Resource) bool {
	counted := true
	if place.Namespace == "" {
		p.ClusterWide++
	} else if !countIn(p.Namespaces, place.Namespace) {
		counted = false
	}
	if place.Name == "" {
		p.Unnamed++
	} else if !countIn(p.Names, place.Name) {
		counted = false
	}
	return counted
}

// selectedName is the name that a field selector limits a list or watch to, as the API server reads it to authorize the request;
// empty if there is none.
func selectedName(selector string) string {
	if selector == "" {
		return ""
	}
	parsed, err := fields.ParseSelector(selector)
	if err != nil {
		return ""
	}
	name, _ := parsed.RequiresExactMatch("metadata.name")
	return name
}

func countIn(counts map[string]uint64, name string) bool {
	if _, counted := counts[name]; !counted && len(counts) == maxNames {
		return false
	}
	counts[name]++
	return true
}

// reopen returns totals that continue those of a recording.
func (t *Totals) reopen() Totals {
	c := *t
	c.byUse, c.byHot, c.generated, c.mentioned = map[useKey]*Use{}, map[objectKey]uint64{}, map[objectKey]bool{}, map[string]bool{}
	for _, name := range t.Mentioned {
		c.mentioned[name] = true
	}
	for _, u := range t.Uses {
		if u.Namespaces == nil {
			u.Namespaces = map[string]uint64{}
		}
		if u.Names == nil {
			u.Names = map[string]uint64{}
		}
		c.byUse[useKey{u.Verb, u.Group, u.Resource, u.Subresource, u.Path, ReasonClass(u.Implied), u.As}] = u
	}
	for _, hot := range t.Hot {
		c.byHot[objectKey{hot.Group, hot.Resource, hot.Namespace, hot.Name}] = hot.Writes
	}
	return c
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// clone returns a copy of the totals.
func (t *Totals) clone() Totals {
	const hottest = 10
	c := *t
	c.byUse, c.byHot, c.generated, c.mentioned, c.Uses, c.Hot = nil, nil, nil, nil, []*Use{}, nil
	c.Mentioned = slices.Sorted(maps.Keys(t.mentioned))
	for _, u := range t.byUse {
		copied := *u
		copied.Namespaces, copied.Names, copied.ForbiddenAt = maps.Clone(u.Namespaces), maps.Clone(u.Names), u.ForbiddenAt.Clone()
		c.Uses = append(c.Uses, &copied)
	}
	slices.SortFunc(c.Uses, func(a, b *Use) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Subresource, b.Subresource),
			cmp.Compare(a.Path, b.Path), cmp.Compare(a.Verb, b.Verb), cmp.Compare(a.Implied, b.Implied), compareBools(a.As, b.As))
	})
	for key, writes := range t.byHot {
		c.Hot = append(c.Hot, Hot{key.group, key.resource, key.namespace, key.name, writes})
	}
	slices.SortFunc(c.Hot, func(a, b Hot) int {
		return cmp.Or(cmp.Compare(b.Writes, a.Writes), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	c.Hot = c.Hot[:min(len(c.Hot), hottest)]
	return c
}
