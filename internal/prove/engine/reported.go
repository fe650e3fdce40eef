// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/opdock/opdock/internal/prove/compare"
)

// Not every change can be carried out. That is no defect if the operator tells users so.

// differing is what is different after a change from a fresh start: in objects, and in the status of custom resources.
type differing struct{ objects, status []compare.Difference }

// reports tests whether a user can see that a change was not carried out, or why. It also does if the fresh start has not
// succeeded either, although the step before the change had. Said are warnings that have another cause.
func (r *run) reports(ctx context.Context, step int, now, fresh *made, found *differing, said map[string]bool, since time.Time) (bool, error) {
	subjects := r.campaign.o.Subjects
	switch {
	case isUnhealthy(subjects, fresh) && !isUnhealthy(subjects, r.campaign.learnedMade(step)):
		return true, nil
	case len(found.objects) > 0 && slices.ContainsFunc(found.status, saysTrouble):
		return true, nil
	case saysSo(subjects, now, fresh):
		return true, nil
	}
	var events corev1.EventList
	if err := r.objects.List(ctx, &events); err != nil {
		return false, fmt.Errorf("listing events: %w", err)
	}
	return slices.ContainsFunc(events.Items, func(e corev1.Event) bool {
		about := nameOf(e.InvolvedObject.Kind, e.InvolvedObject.Namespace, e.InvolvedObject.Name)
		concerns := r.campaign.isSubject(about) || slices.ContainsFunc(found.objects, func(d compare.Difference) bool { return d.Object == about })
		return concerns && isReport(&e, since) && !ofKubernetes(&e) && !said[wordsOfEvent(&e)]
	}), nil
}

// aboutReadiness are conditions that are not true while an operator is at work, or for ever if it is stuck.
var aboutReadiness = regexp.MustCompile(`(?i)ready|available|progress|healthy|reconcil|running|initialized|complete`)

// saysTrouble reports whether a condition or a phase, which a fresh start does not have, says that something does not work. One that is
// only not ready, or still at work, does not: it may stay so. A condition such as Accepted, which is not true any more, does.
func saysTrouble(d compare.Difference) bool {
	word := d.Got
	if kind, is := strings.CutPrefix(d.Path, "status.conditions["); is {
		if d.Got != "True" {
			return d.Want == "True" && !aboutReadiness.MatchString(kind)
		}
		word = strings.TrimSuffix(kind, "].status")
	}
	return troubled.MatchString(spaced(word))
}

// warnings are the warnings so far.
func (r *run) warnings(ctx context.Context) (map[string]bool, error) {
	var events corev1.EventList
	if err := r.objects.List(ctx, &events); err != nil {
		return nil, fmt.Errorf("listing events: %w", err)
	}
	said := map[string]bool{}
	for i := range events.Items {
		if e := &events.Items[i]; e.Type == corev1.EventTypeWarning {
			said[wordsOfEvent(e)] = true
		}
	}
	return said, nil
}

// wordsOfEvent is what an event says, without what is different each time.
func wordsOfEvent(e *corev1.Event) string { return e.Reason + "|" + plain(e.Message) }

// isReport reports whether an event since a time warns of more than a conflict, which the next attempt solves.
func isReport(e *corev1.Event, since time.Time) bool {
	at := e.LastTimestamp.Time
	if at.IsZero() {
		at = e.EventTime.Time
	}
	if e.Series != nil && e.Series.LastObservedTime.After(at) {
		at = e.Series.LastObservedTime.Time
	}
	return e.Type == corev1.EventTypeWarning && !at.Before(since) && !strings.Contains(e.Message, conflicting)
}

// kubernetesSources are the sources of events that are not of an operator.
var kubernetesSources = []string{
	"attachdetach-controller", "controllermanager", "cronjob-controller", "daemonset-controller", "default-scheduler", "deployment-controller",
	"endpoint-controller", "endpoint-slice-controller", "endpoint-slice-mirroring-controller", "ephemeral_volume", "garbage-collector-controller",
	"horizontal-pod-autoscaler", "job-controller", "kubelet", "node-controller", "persistentvolume-controller", "replicaset-controller",
	"replication-controller", "resource_claim", "statefulset-controller", "taint-eviction-controller", "ttl-after-finished-controller", "volume_expand",
}

// ofKubernetes reports whether an event comes from Kubernetes' own controllers.
func ofKubernetes(e *corev1.Event) bool {
	return slices.Contains(kubernetesSources, e.Source.Component) || slices.Contains(kubernetesSources, e.ReportingController)
}
