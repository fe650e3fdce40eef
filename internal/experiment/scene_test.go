// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"time"

	"github.com/opdock/opdock/why"
)

var (
	theDeployment = &why.Object{Kind: "Deployment", Group: "apps", Version: "v1", Namespace: "n", Name: "web", UID: "d"}
	theApp        = &why.Object{Kind: "AppService", Namespace: "n", Name: "web", UID: "a"}
	onePod        = &why.Object{Kind: "Pod", Version: "v1", Namespace: "n", Name: "web-1", UID: "p"}
)

func by(manager, subresource string) []why.Writer {
	return []why.Writer{{Manager: manager, Operation: "Update", Subresource: subresource}}
}

func change(path, from, to string) why.Change { return why.Change{Path: path, Old: from, New: to} }

// updated returns an update event. The version identifies the event.
func updated(object *why.Object, version string, writers []why.Writer, changes ...why.Change) why.Cause {
	return why.Cause{
		Type: why.Updated, Object: object, ResourceVersion: version, By: writers, Changes: changes, Changed: len(changes),
		Seen: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
}

func record(writes []why.Write, causes ...why.Cause) *why.Record {
	return &why.Record{Causes: causes, Folded: len(causes), Writes: writes, Written: len(writes), Outcome: why.Succeeded}
}

// The events of scaling from three replicas to one.
var (
	scaled = updated(theDeployment, "1", by(fieldOwner, ""), change("spec.replicas", "3", "1"))
	seen   = updated(theDeployment, "2", by("kube-controller-manager", "status"), change("status.observedGeneration", "1", "2"))
	fewer  = updated(theDeployment, "3", by("kube-controller-manager", "status"),
		change("status.replicas", "3", "1"), change("status.readyReplicas", "3", "1"), change("status.terminatingReplicas", "0", "2"))
	stopped = updated(theDeployment, "4", by("kube-controller-manager", "status"), change("status.terminatingReplicas", "2", "0"))
)

var writeAddresses = []why.Write{{Verb: "update", Object: why.Object{Kind: "ConfigMap"}, NoChange: true}}

// scene returns a result as a short run produces it.
func scene() *Result {
	naive := []observation{
		{trace: newTrace([]*why.Record{record(writeAddresses, scaled), record(writeAddresses, seen), record(writeAddresses, fewer, stopped)})},
		{trace: newTrace([]*why.Record{record(writeAddresses, scaled), record(writeAddresses, seen), record(writeAddresses, fewer)})},
		{trace: newTrace([]*why.Record{record(writeAddresses, scaled), record(writeAddresses, seen), record(writeAddresses, fewer, stopped)})},
	}
	sized := updated(theApp, "5", by(fieldOwner, ""), change("spec.size", "3", "1"))
	status := updated(theApp, "6", by("opdock-appservice", "status"), change("status.replicas", "3", "1"))
	podGoes := updated(onePod, "7", nil, change("metadata.deletionTimestamp", "", `"2026-01-02T03:04:05Z"`))
	witness := newTrace([]*why.Record{record(nil, sized, fewer, status, podGoes, why.Cause{Type: why.Deleted, Object: onePod, ResourceVersion: "8"})})
	fewerUnnamed := fewer
	fewerUnnamed.By = nil
	fleet := newTrace([]*why.Record{
		record([]why.Write{{Verb: "apply", Object: *theDeployment}, {Verb: "patch", Subresource: "status", Object: *theApp}}, sized),
		record([]why.Write{{Verb: "patch", Subresource: "status", Object: *theApp}}, fewerUnnamed),
	})
	fleet.nameWriters(&witness)
	result := &Result{Kubernetes: "v1.2.3", Runs: 3, ReadyAfter: time.Second}
	for _, containers := range []int{2, 4} {
		for _, name := range []string{"scale-3-1", "scale-3-4"} {
			row := Row{
				Change: name, Title: "replicas, as in " + name, Containers: containers, Counted: Counted(name, containers),
				AppService: newMeasured(appServiceName, []observation{{trace: fleet, seen: witness.Events}}),
			}
			for _, watching := range Watchings {
				row.Naive = append(row.Naive, newMeasured(watching.Name, naive))
			}
			result.Rows = append(result.Rows, row)
		}
	}
	return result
}
