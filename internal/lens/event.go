// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"slices"
	"strings"
	"time"

	"github.com/opdock/opdock/why"
)

// Event is one thing that a lens has seen. Exactly one of the pointers is set.
type Event struct {
	// Seq counts the events of a lens, from 1.
	Seq uint64 `json:"seq"`
	// At is when it happened: for a request when it arrived, for a delivery when it was passed on.
	At time.Time `json:"at"`

	Request   *Request   `json:"request,omitempty"`
	Delivery  *Delivery  `json:"delivery,omitempty"`
	Reconcile *Reconcile `json:"reconcile,omitempty"`
	Read      *Read      `json:"read,omitempty"`
	Process   *Process   `json:"process,omitempty"`
	Lost      *Lost      `json:"lost,omitempty"`
}

// Request is a request and how it was answered. A watch has two: one when it begins, with Open set, and one when it ends.
type Request struct {
	// ID is the same in both events of a watch, in its deliveries, and in references to a write.
	ID uint64 `json:"id"`
	// Verb is the verb of RBAC, or apply for a server-side apply. Requests that are not about resources have the HTTP method,
	// in lower case, and a Path.
	Verb     string   `json:"verb"`
	Resource Resource `json:"resource,omitzero"`
	Path     string   `json:"path,omitempty"`
	// Object is the object that was read or written, as far as the response shows.
	Object *Object `json:"object,omitempty"`

	UserAgent    string `json:"userAgent,omitempty"`
	FieldManager string `json:"fieldManager,omitempty"`
	// As is the user that is impersonated. ByToken means that the request has a token of another service account, which the
	// operator requested before: As is that account, unless it impersonates another user.
	As      string `json:"as,omitempty"`
	ByToken bool   `json:"byToken,omitempty"`
	// Reconcile is the ID of the reconcile that sent it, if the operator marks its reconciles.
	Reconcile uint64 `json:"reconcile,omitempty"`
	// Source holds the lines that sent a write, FILE:LINE relative to the operator's module, the nearest first, if the
	// operator marks its reconciles.
	Source []string `json:"source,omitempty"`

	DryRun bool   `json:"dryRun,omitempty"`
	Query  *Query `json:"query,omitempty"`
	// Encoding is the content type of the answer without parameters, and BytesIn and BytesOut are the sizes of the bodies.
	Encoding string `json:"encoding,omitempty"`
	BytesIn  int64  `json:"bytesIn,omitempty"`
	BytesOut int64  `json:"bytesOut,omitempty"`

	// Status is the HTTP status; 0 means that there was no response, and Error contains the reason. Reason and Message
	// come from the Status object of a refusal.
	Status  int    `json:"status,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	Error   string `json:"error,omitempty"`
	// Fault describes what Faults did to it.
	Fault string `json:"fault,omitempty"`

	// Open is set in the event for the start of a watch.
	Open bool `json:"open,omitempty"`
	// Wait is how long the first byte of the answer took, and Duration how long all of it.
	Wait     time.Duration `json:"wait,omitempty"`
	Duration time.Duration `json:"duration"`

	// Items is how many objects a list returned, or a deletecollection has deleted. Deleted has the UIDs of the first of the latter;
	// their Object has no name.
	Items   int      `json:"items,omitempty"`
	Deleted []string `json:"deleted,omitempty"`
	// Change is what a write changed; nil if unknown.
	Change *Change `json:"change,omitempty"`
	// Finalized means that a write has removed the last finalizer of an object that was being deleted: the object is gone, and
	// Object has the version of before.
	Finalized bool `json:"finalized,omitempty"`
	// Delivered is the watch that delivered the version that a write made, if that was faster than the answer.
	Delivered uint64 `json:"delivered,omitempty"`
	// Implies are the rights that a request needs besides the right to send it: by the body of a write, or by what it
	// impersonates besides a user.
	Implies []Implied `json:"implies,omitempty"`
	// Mentioned are the names in the request, of objects and namespaces, that contain a value from a custom resource.
	Mentioned []string `json:"mentioned,omitempty"`
	// Undecoded is the reason why Object, Items or Change are unknown, if the response should contain them.
	Undecoded string `json:"undecoded,omitempty"`
}

// IsWrite reports whether a request is meant to change a stored object.
func (r *Request) IsWrite() bool { return !r.DryRun && r.asksToWrite() }

// asksToWrite is IsWrite also for a dry run, which needs the same rights.
func (r *Request) asksToWrite() bool {
	if isReview(r.Resource) || isConversation(r.Resource.Subresource) || r.Path != "" {
		return false
	}
	switch r.Verb {
	case "create", "update", "patch", "apply", "delete", "deletecollection":
		return true
	}
	return false
}

// Refused reports whether the API server refused a request, or did not respond.
func (r *Request) Refused() bool { return r.Status >= 400 || r.Status == 0 && !r.Open && r.Error != "" }

// Made returns the versions that a write made, as watches deliver them.
func (r *Request) Made() []Version {
	if r.Object == nil || r.Refused() || r.Change != nil && r.Change.None {
		return nil
	}
	made, gone := Version{r.Object.UID, r.Object.ResourceVersion}, Version{UID: r.Object.UID}
	switch {
	case r.Verb == "deletecollection":
		var all []Version
		for _, uid := range r.Deleted {
			all = append(all, Version{UID: uid}, Version{uid, deletionBegins})
		}
		return all
	case r.isEviction() && !r.Object.Deleting:
		return []Version{gone, {r.Object.UID, deletionBegins}}
	case r.Finalized, r.Verb == "delete" && !r.Object.Deleting, r.isEviction():
		return []Version{gone} // the version in the answer was there before
	case r.Verb == "delete":
		// Without a grace period, the API server stores that the deletion begins in a version that the answer does not have.
		return []Version{made, gone, {r.Object.UID, deletionBegins}}
	}
	return []Version{made}
}

// Resource identifies the resource of a request, in the terms of RBAC.
type Resource struct {
	Group       string `json:"group,omitempty"`
	Version     string `json:"version,omitempty"`
	Resource    string `json:"resource,omitempty"`
	Subresource string `json:"subresource,omitempty"`
	Namespace   string `json:"namespace,omitempty"`
	Name        string `json:"name,omitempty"`
}

// Object names one version of an object.
type Object struct {
	Group           string `json:"group,omitempty"`
	Version         string `json:"version,omitempty"`
	Kind            string `json:"kind"`
	Namespace       string `json:"namespace,omitempty"`
	Name            string `json:"name"`
	UID             string `json:"uid,omitempty"`
	ResourceVersion string `json:"resourceVersion,omitempty"`
	Generation      int64  `json:"generation,omitempty"`
	// Owners are its owner references.
	Owners []Owner `json:"owners,omitempty"`
	// Deleting means that it waits for its finalizers.
	Deleting bool `json:"deleting,omitempty"`
	// Generated means that the API server has made up its name.
	Generated bool `json:"generated,omitempty"`
}

// Version names a version of an object.
type Version struct {
	UID string
	// ResourceVersion is empty for the end of the object. For the version with which its deletion begins, it is deletionBegins if it
	// is not known.
	ResourceVersion string
}

// deletionBegins takes the place of a resource version: the answer to a deletecollection has the objects as they were before, and the
// one to a delete without a grace period as they were at the end.
const deletionBegins = "deletion"

// Owner is an owner reference.
type Owner struct {
	Group      string `json:"group,omitempty"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	UID        string `json:"uid,omitempty"`
	Controller bool   `json:"controller,omitempty"`
}

// Query holds the options of reads.
type Query struct {
	LabelSelector   string `json:"labelSelector,omitempty"`
	FieldSelector   string `json:"fieldSelector,omitempty"`
	ResourceVersion string `json:"resourceVersion,omitempty"`
	Match           string `json:"resourceVersionMatch,omitempty"`
	Limit           int64  `json:"limit,omitempty"`
	Continue        bool   `json:"continue,omitempty"`
	InitialEvents   bool   `json:"sendInitialEvents,omitempty"`
	Bookmarks       bool   `json:"allowWatchBookmarks,omitempty"`
}

// Change is what became of an object.
type Change struct {
	// From is the resource version of the version before, as far as the lens has seen one.
	From string `json:"from,omitempty"`
	// None means that nothing changed.
	None bool `json:"none,omitempty"`
	// Fields are the first fields that differ, and Changed is how many do. The data of Secrets is hidden.
	Fields  []why.Change `json:"fields,omitempty"`
	Changed int          `json:"changed,omitempty"`
	// By holds the writers of the change, as far as managed fields identify them.
	By []why.Writer `json:"by,omitempty"`
}

// Count is how many fields are known to differ.
func (c *Change) Count() int { return max(c.Changed, len(c.Fields)) }

// leaderAnnotation is on ConfigMaps and Endpoints by which older operators elect a leader. It is written every few seconds.
const leaderAnnotation = "control-plane.alpha.kubernetes.io/leader"

// RenewsLeader reports whether the change is part of a leader election that does not use Leases.
func (c *Change) RenewsLeader() bool {
	return c != nil && slices.ContainsFunc(c.Fields, func(field why.Change) bool { return strings.Contains(field.Path, leaderAnnotation) })
}

// Implied is a right that no request shows.
type Implied struct {
	Verb     string   `json:"verb"`
	Resource Resource `json:"resource,omitzero"`
	// Path is the URL of a right that is not about resources, which may end with *.
	Path string `json:"path,omitempty"`
	// Because is the reason for it.
	Because string `json:"because"`
}

// Delivery is one event of a watch, passed on to the operator. Objects of the list with which older informers begin are
// deliveries, too.
type Delivery struct {
	// Watch is the ID of the request: a watch, or such a list.
	Watch    uint64   `json:"watch"`
	Resource Resource `json:"resource"`
	// Type is ADDED, MODIFIED, DELETED, BOOKMARK or ERROR.
	Type   string  `json:"type"`
	Object *Object `json:"object,omitempty"`
	// Initial means that the object existed when the watch began.
	Initial bool `json:"initial,omitempty"`
	// Change is how the object differs from the version delivered before; nil for the first.
	Change *Change `json:"change,omitempty"`
	// Write is the operator's own request that made this version, if its response came before; otherwise the request
	// has Delivered.
	Write uint64 `json:"write,omitempty"`
	// Held is for how long Faults held it, and Fault what else they did to it.
	Held  time.Duration `json:"held,omitempty"`
	Fault string        `json:"fault,omitempty"`
	// Undecoded is the reason why Object and Change are unknown.
	Undecoded string `json:"undecoded,omitempty"`
}

// Shows returns the version that an event shows, and others under which a write may have made it, the likeliest first.
func (d *Delivery) Shows() []Version {
	if d.Object == nil {
		return nil
	}
	versions := []Version{{d.Object.UID, d.Object.ResourceVersion}}
	switch {
	case d.Type == "DELETED":
		versions = append(versions, Version{UID: d.Object.UID})
	case d.Object.Deleting && d.Change != nil && slices.ContainsFunc(d.Change.Fields, beginsDeletion):
		versions = append(versions, Version{d.Object.UID, deletionBegins})
	}
	return versions
}

// beginsDeletion reports whether a field shows that a deletion was requested. A later change moves the time: the kubelet does so when the
// containers of a pod have ended.
func beginsDeletion(field why.Change) bool {
	return field.Path == "metadata.deletionTimestamp" && field.Old == ""
}

// Reconcile is the beginning or the end of a reconcile, from an operator that marks its reconciles.
type Reconcile struct {
	ID         uint64 `json:"id"`
	Controller string `json:"controller"`
	Group      string `json:"group,omitempty"`
	Kind       string `json:"kind,omitempty"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	// Ended is set in the event for its end.
	Ended        bool          `json:"ended,omitempty"`
	Duration     time.Duration `json:"duration,omitempty"`
	Error        string        `json:"error,omitempty"`
	Terminal     bool          `json:"terminal,omitempty"`
	Panicked     bool          `json:"panicked,omitempty"`
	Requeue      bool          `json:"requeue,omitempty"`
	RequeueAfter time.Duration `json:"requeueAfter,omitempty"`
}

// Read is a read from a cache of the operator, from an operator that marks its reconciles.
type Read struct {
	Reconcile uint64 `json:"reconcile"`
	Group     string `json:"group,omitempty"`
	Version   string `json:"version,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	// Name is empty for a list.
	Name string `json:"name,omitempty"`
}

// Process is the start or the end of the operator's process.
type Process struct {
	Started bool   `json:"started,omitempty"`
	Ended   bool   `json:"ended,omitempty"`
	How     string `json:"how,omitempty"`
	// Identity is the identity of the process.
	Identity string `json:"identity,omitempty"`
	// Instrumented means that the operator was built to mark its reconciles. Those of controllers that use client-go
	// alone are not marked.
	Instrumented bool `json:"instrumented,omitempty"`
}

// Lost is the number of events that are missing at this point, and the reason.
type Lost struct {
	Events uint64 `json:"events"`
	Reason string `json:"reason"`
}
