// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/opdock/opdock/internal/lens"
)

const (
	// maxReconciles and maxSubjects bound what is remembered of a recording; one of its greatest size has fewer.
	maxReconciles = 1 << 20
	maxSubjects   = 1 << 16
	// maxLive bounds the reconciles of a recording that goes on. Only those of the latest requests are evidence.
	maxLive = 1 << 13
)

// Recording is what matters for rights in one recording.
type Recording struct {
	// Name is the one of its file.
	Name   string
	Header lens.Header
	Totals lens.Totals
	// Cut means that the end of the recording is missing, and Missing is how many other events are. Totals may still count them.
	Cut     bool
	Missing uint64

	facts facts
}

// facts are what events tell and totals do not.
type facts struct {
	// live means that there is no end to events.
	live bool
	// reconciles are those that have begun, by their IDs.
	reconciles map[uint64]Reconcile
	// subjects are the names of objects that are reconciled, or own others. What is called after them is called otherwise the
	// next time. subjectNamespaces are where those objects are.
	subjects          map[string]bool
	subjectNamespaces map[string]bool
	// mentioned are names and namespaces in requests that contain a value from a custom resource: the next one has another value.
	mentioned map[string]bool
	// madeNamespaces are those that the operator creates or deletes. There will be others the next time.
	madeNamespaces map[string]bool
	// inNamespaces are the resources of which an object in a namespace was seen, and inNone those of which one in none was.
	inNamespaces map[schema.GroupResource]bool
	inNone       map[schema.GroupResource]bool
	resources    map[schema.GroupKind]schema.GroupResource
	// clusterRoles are the names of the ClusterRoles that the operator wrote. A Role may have the same name as one elsewhere.
	clusterRoles map[string]bool
	// locks are what the operator elects its leader by, if that is not a Lease.
	locks map[lock]bool
	// cached is how many reads of a kind a cache has answered.
	cached map[schema.GroupKind]uint64
}

func newFacts() facts {
	return facts{
		reconciles: map[uint64]Reconcile{}, subjects: map[string]bool{}, subjectNamespaces: map[string]bool{}, mentioned: map[string]bool{},
		madeNamespaces: map[string]bool{}, inNamespaces: map[schema.GroupResource]bool{}, inNone: map[schema.GroupResource]bool{}, resources: map[schema.GroupKind]schema.GroupResource{},
		cached: map[schema.GroupKind]uint64{}, locks: map[lock]bool{}, clusterRoles: map[string]bool{},
	}
}

// Reconcile names a reconcile.
type Reconcile struct {
	ID         uint64 `json:"id"`
	Controller string `json:"controller,omitempty"`
	Kind       string `json:"kind,omitempty"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name,omitempty"`
}

func (r Reconcile) String() string {
	if r.Name == "" {
		return fmt.Sprintf("reconcile #%d", r.ID)
	}
	object := r.Name
	if r.Namespace != "" {
		object = r.Namespace + "/" + r.Name
	}
	return fmt.Sprintf("reconcile #%d of %s %s", r.ID, r.Controller, object)
}

// Begin returns a recording of something that still goes on. The caller passes its events to See, and sets Totals.
func Begin(name string, header lens.Header) *Recording {
	r := &Recording{Name: name, Header: header, facts: newFacts()}
	r.facts.live = true
	return r
}

// See takes the next event.
func (r *Recording) See(e *lens.Event) { r.facts.see(e) }

// Collect reads a recording.
func Collect(name string, from io.Reader) (*Recording, error) {
	r := &Recording{Name: name, facts: newFacts()}
	read, err := lens.ReadRecording(from, func(e *lens.Event) error {
		r.See(e)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	r.Header, r.Totals, r.Cut, r.Missing = read.Header, read.Totals, read.Cut, read.Missing
	return r, nil
}

// clients are programs that are no operators, although they may have been traced with the account of one.
var clients = []string{"helm", "kubectl", "oc"}

func isClient(command []string) bool {
	program := filepath.Base(command[0])
	return slices.Contains(clients, program) || program == "opdock" && len(command) > 1 && command[1] == "kubectl"
}

// OfOtherProgram returns which program a recording of a project is about if that is not the operator, whose account this is; empty
// for the operator. Without an account, only well-known clients are known to be other programs.
func OfOtherProgram(header lens.Header, account string) string {
	if !header.Traced || len(header.Command) == 0 || (account == "" || header.Identity == account) && !isClient(header.Command) {
		return ""
	}
	return fmt.Sprintf("%q as %s", strings.Join(header.Command, " "), cmp.Or(header.Identity, "an unknown user"))
}

// CollectFile reads the recording in a file.
func CollectFile(path string) (*Recording, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening a recording: %w", err)
	}
	defer file.Close()
	return Collect(filepath.Base(path), file)
}

func (f *facts) see(e *lens.Event) {
	switch {
	case e.Reconcile != nil:
		f.reconcile(e.Reconcile)
	case e.Read != nil:
		f.cached[schema.GroupKind{Group: e.Read.Group, Kind: e.Read.Kind}]++
	case e.Delivery != nil:
		f.object(e.Delivery.Object, e.Delivery.Resource)
	case e.Request != nil:
		f.object(e.Request.Object, e.Request.Resource)
		if at := e.Request.Resource; e.Request.Change.RenewsLeader() && at.Group == "" && len(f.locks) < maxSubjects {
			f.locks[lock{at.Resource, at.Namespace, at.Name}] = true
		}
		f.clusterRole(e.Request)
		if e.Request.Object != nil && e.Request.IsWrite() {
			// Whatever owns what an operator writes is most likely what it reconciles, even if it is of a kind of Kubernetes.
			for _, owner := range e.Request.Object.Owners {
				f.subject(e.Request.Object.Namespace, owner.Name)
			}
		}
	}
}

// clusterRole takes a ClusterRole that a request wrote. Totals do not count how many requests for one name were refused.
func (f *facts) clusterRole(r *lens.Request) {
	isWrite := slices.Contains([]string{"create", "update", "patch", "apply"}, r.Verb) && !r.Refused() && !r.DryRun && r.As == ""
	if isWrite && r.Resource.Group == rbacv1.GroupName && r.Resource.Resource == "clusterroles" && len(f.clusterRoles) < maxSubjects {
		f.clusterRoles[r.Resource.Name] = true
	}
}

func (f *facts) reconcile(r *lens.Reconcile) {
	if r.Ended {
		return
	}
	if f.live && len(f.reconciles) == maxLive {
		clear(f.reconciles)
	}
	if len(f.reconciles) < maxReconciles {
		f.reconciles[r.ID] = Reconcile{r.ID, r.Controller, r.Kind, r.Namespace, r.Name}
	}
	f.subject(r.Namespace, r.Name)
}

func (f *facts) subject(namespace, name string) {
	if name != "" && len(f.subjects) < maxSubjects { // one that reconciles everything at once has no name
		f.subjects[name] = true
	}
	if namespace != "" && len(f.subjectNamespaces) < maxSubjects {
		f.subjectNamespaces[namespace] = true
	}
}

func (f *facts) object(o *lens.Object, at lens.Resource) {
	if o == nil || at.Subresource != "" {
		return
	}
	resource := schema.GroupResource{Group: at.Group, Resource: at.Resource}
	f.resources[schema.GroupKind{Group: o.Group, Kind: o.Kind}] = resource
	switch {
	case o.Namespace != "":
		f.inNamespaces[resource] = true
	case o.Name != "":
		f.inNone[resource] = true
	}
	if IsCustom(at.Group) {
		f.subject(o.Namespace, o.Name)
	}
	if o.Generated && resource == (schema.GroupResource{Resource: "namespaces"}) && len(f.madeNamespaces) < maxSubjects {
		f.madeNamespaces[o.Name] = true // totals do not count such names
	}
	for _, owner := range o.Owners {
		if IsCustom(owner.Group) {
			f.subject(o.Namespace, owner.Name)
		}
	}
}

// IsCustom reports whether a group is not one of Kubernetes itself.
func IsCustom(group string) bool {
	return strings.Contains(group, ".") && !strings.HasSuffix(group, ".k8s.io")
}

// latest is the later of two points in time.
func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
