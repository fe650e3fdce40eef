// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"strconv"
	"time"

	"github.com/opdock/opdock/why"
)

const (
	groupApp       = "app.example.com"
	kindApp        = "AppService"
	kindDeployment = "Deployment"

	controller = "appservice"
	ourManager = "opdock-appservice"
)

// Tell plays one of the stories on an application at once: scale, release, resync, fail or quarrel.
func (w *World) Tell(story, name string, now time.Time) error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	a := w.find(name)
	tell, known := map[string]func(*app, time.Time) []why.Record{
		"scale": w.scale, "release": w.release, "resync": w.resync, "fail": w.fail, "quarrel": w.quarrel,
	}[story]
	if a == nil || !known {
		return fmt.Errorf("there is no story %q about %q", story, name)
	}
	for _, record := range tell(a, now) {
		w.Endpoint.add(record)
		w.send(&record)
	}
	return nil
}

// scale is a user who changes the size: the Deployment is applied, answers with its status, and the status is written.
func (w *World) scale(a *app, now time.Time) []why.Record {
	old := a.replicas
	a.replicas = 1 + a.replicas%5
	first := w.pass(a, now, w.cause(why.Updated, a.object(), "kubectl-client-side-apply", "",
		why.Change{Path: "spec.size", Old: strconv.Itoa(old), New: strconv.Itoa(a.replicas)}))
	w.writes(&first, "apply", "", a.deployment())
	return append([]why.Record{first}, w.rollout(a, first, old)...)
}

// release is a new image.
func (w *World) release(a *app, now time.Time) []why.Record {
	old := a.image
	a.image++
	change := func(path string) why.Change {
		return why.Change{Path: path, Old: fmt.Sprintf(`"nginx:1.%d"`, old), New: fmt.Sprintf(`"nginx:1.%d"`, a.image)}
	}
	first := w.pass(a, now, w.cause(why.Updated, a.object(), "argocd-controller", "", change("spec.image")))
	w.writes(&first, "apply", "", a.deployment())
	w.writes(&first, "patch", "status", a.object())
	return append([]why.Record{first}, w.rollout(a, first, a.replicas)...)
}

// rollout is what follows when a Deployment was written: its status comes in pieces, of which some are folded.
func (w *World) rollout(a *app, first why.Record, old int) []why.Record {
	number := strconv.Itoa
	echo := w.cause(why.Updated, a.deployment(), ourManager, "", why.Change{Path: "spec.replicas", Old: number(old), New: number(a.replicas)})
	echo.Write = &why.WriteRef{Record: first.ID, Index: 0}
	echo.ResourceVersion = first.Writes[0].ResourceVersion
	observed := w.cause(why.Updated, a.deployment(), "kube-controller-manager", "status",
		why.Change{Path: "status.observedGeneration", Old: "4", New: "5"},
		why.Change{Path: "status.replicas", Old: number(old), New: number(a.replicas)},
		why.Change{Path: "status.unavailableReplicas", New: "1"})
	second := w.pass(a, w.end(first).Add(12*time.Millisecond), echo, observed)
	w.writes(&second, "patch", "status", a.object())
	available := w.cause(why.Updated, a.deployment(), "kube-controller-manager", "status",
		why.Change{Path: "status.availableReplicas", Old: number(old), New: number(a.replicas)},
		why.Change{Path: "status.unavailableReplicas", Old: "1"},
		why.Change{Path: "status.conditions[type=Available].status", Old: `"False"`, New: `"True"`})
	own := w.cause(why.Updated, a.object(), ourManager, "status",
		why.Change{Path: "status.conditions[type=Ready].status", Old: `"True"`, New: `"False"`})
	own.Write = &why.WriteRef{Record: second.ID, Index: 0}
	own.ResourceVersion = second.Writes[0].ResourceVersion
	third := w.pass(a, w.end(second).Add(180*time.Millisecond), own, available)
	w.writes(&third, "patch", "status", a.object())
	last := w.cause(why.Updated, a.object(), ourManager, "status",
		why.Change{Path: "status.conditions[type=Ready].status", Old: `"False"`, New: `"True"`},
		why.Change{Path: "status.availableReplicas", Old: number(old), New: number(a.replicas)})
	last.Write = &why.WriteRef{Record: third.ID, Index: 0}
	last.ResourceVersion = third.Writes[0].ResourceVersion
	fourth := w.pass(a, w.end(third).Add(8*time.Millisecond), last)
	fourth.Findings = []why.Finding{
		{Type: why.SelfInflicted, Message: "caused by its own write of the status in #" + number(int(third.ID))},
		{Type: why.NoOp, Message: "nothing it reads has changed, and it wrote nothing"},
	}
	return []why.Record{second, third, fourth}
}

// resync is an event without a change.
func (w *World) resync(a *app, now time.Time) []why.Record {
	record := w.pass(a, now, w.cause(why.Resynced, a.object(), ""))
	record.Findings = []why.Finding{{Type: why.NoOp, Message: "nothing it reads has changed, and it wrote nothing"}}
	return []why.Record{record}
}

// fail is a conflict that a retry resolves, and a reconcile that a timer triggers.
func (w *World) fail(a *app, now time.Time) []why.Record {
	first := w.pass(a, now, w.cause(why.Created, why.Object{Kind: "Service", Version: "v1", Namespace: Namespace, Name: a.name, UID: string(uid("Service", a.name))}, "kubectl-create", ""))
	w.writes(&first, "apply", "", a.deployment())
	first.Writes[0].Error = "the object has been modified; please apply your changes to the latest version"
	first.Writes[0].ResourceVersion = ""
	first.Outcome, first.Error = why.Failed, "applying deployment: the object has been modified; please apply your changes to the latest version"
	second := w.pass(a, w.end(first).Add(90*time.Millisecond), why.Cause{Type: why.Retried})
	w.writes(&second, "apply", "", a.deployment())
	second.Outcome, second.RequeueAfter = why.Requeued, 300*time.Millisecond
	third := w.pass(a, w.end(second).Add(300*time.Millisecond), why.Cause{Type: why.Timer})
	return []why.Record{first, second, third}
}

// quarrel is two writers of one field.
func (w *World) quarrel(a *app, now time.Time) []why.Record {
	var story []why.Record
	writers := []why.Writer{{Manager: ourManager, Operation: "Apply"}, {Manager: "cost-saver", Operation: "Update"}}
	for range 3 {
		record := w.pass(a, now, w.cause(why.Updated, a.deployment(), "cost-saver", "",
			why.Change{Path: "spec.replicas", Old: strconv.Itoa(a.replicas), New: "0"}))
		w.writes(&record, "apply", "", a.deployment())
		record.Findings = []why.Finding{{
			Type: why.Loop, Path: "spec.replicas", Writers: writers,
			Message: fmt.Sprintf("spec.replicas of Deployment %s goes back and forth between %s and cost-saver", a.name, ourManager),
		}}
		story = append(story, record)
		now = w.end(record).Add(120 * time.Millisecond)
	}
	return story
}

func (a *app) object() why.Object {
	return why.Object{Kind: kindApp, Group: groupApp, Version: "v1", Namespace: Namespace, Name: a.name, UID: string(uid(kindApp, a.name))}
}

func (a *app) deployment() why.Object {
	return why.Object{Kind: kindDeployment, Group: "apps", Version: "v1", Namespace: Namespace, Name: a.name, UID: string(uid(kindDeployment, a.name))}
}

func (w *World) end(r why.Record) time.Time { return r.Start.Add(r.Duration) }

func (w *World) nextVersion() string {
	w.version++
	return strconv.Itoa(w.version)
}

func (w *World) cause(kind why.CauseType, object why.Object, manager string, more ...any) why.Cause {
	cause := why.Cause{Type: kind, Object: &object, ResourceVersion: w.nextVersion()}
	var subresource string
	for _, value := range more {
		switch value := value.(type) {
		case string:
			subresource = value
		case why.Change:
			cause.Changes = append(cause.Changes, value)
		}
	}
	cause.Changed = len(cause.Changes)
	if manager != "" {
		cause.By = []why.Writer{{Manager: manager, Operation: "Update", Subresource: subresource}}
	}
	return cause
}

// pass is a reconcile; the first of its causes is seen at a time, and the others follow soon.
func (w *World) pass(a *app, seen time.Time, causes ...why.Cause) why.Record {
	w.record++
	waited := time.Duration(1+w.random.IntN(6)) * time.Millisecond
	for i := range causes {
		causes[i].Seen = seen.Add(waited * time.Duration(i) / time.Duration(len(causes)))
	}
	a.last = w.record
	return why.Record{
		ID: w.record, Controller: controller, Object: a.object(), Causes: causes, Folded: len(causes), Start: seen.Add(waited),
		Waited: waited, Duration: time.Duration(3+w.random.IntN(9)) * time.Millisecond, Outcome: why.Succeeded,
	}
}

func (w *World) writes(r *why.Record, verb, subresource string, object why.Object) {
	took := time.Duration(2+w.random.IntN(7)) * time.Millisecond
	at := r.Start.Add(r.Duration)
	r.Duration += took + time.Millisecond
	r.Writes = append(r.Writes, why.Write{
		Verb: verb, Subresource: subresource, Object: object, ResourceVersion: w.nextVersion(), At: at, Duration: took,
	})
	r.Written++
}
