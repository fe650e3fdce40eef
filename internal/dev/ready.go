// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/opdock/opdock/internal/project"
)

// An operator reconciles once its caches are synced and its workers run. Its log reports that: controller-runtime,
// and controllers in the style of client-go's example, log it at the default level. Otherwise its readiness probe
// counts. An operator without a probe counts as running if it has not exited after a while.

// stage is the known state of an operator.
type stage string

const (
	reconciling stage = "reconciling" // its log reports that its workers run
	probed      stage = "ready"       // its probe succeeds
	alive       stage = "running"     // it has not ended
	lacking     stage = "waiting"     // its log reports a kind that the cluster does not have
)

const (
	// silence is how long an operator whose probe succeeds may take to log that its workers run.
	silence = 2 * time.Second
	// survival is how long an operator must run to count as running.
	survival = 4 * time.Second
	// leasePatience is how long one may wait for a lease that another holds: longer than a lease lasts.
	leasePatience = 20 * time.Second

	probeInterval = 100 * time.Millisecond
)

var (
	controllerStarts = regexp.MustCompile(`(?i)\bstarting (controller|eventsource)\b`)
	workersStart     = regexp.MustCompile(`(?i)\bstart(ing|ed) workers\b`)
	waitsForLease    = regexp.MustCompile(`(?i)\battempting to acquire leader lease\b(?:.*?([a-z0-9.-]+/[a-z0-9][a-z0-9-]*))?`)
	kindIsMissing    = regexp.MustCompile(`no matches for kind \\*"(\w+)\\*" in version \\*"([^"\\]+)`)
	// resourceIsMissing is client-go's message for the same.
	resourceIsMissing = regexp.MustCompile(`could not find the requested resource \((?:get|post) ([a-z0-9-]+)\.([a-z0-9.-]+)\)`)
	// versionIsMissing is the message of controller-runtime 0.15 and 0.16, which look up a whole version.
	versionIsMissing  = regexp.MustCompile(`server APIs: (?:.*, )?([a-z0-9-]+\.[a-z0-9.-]+)/(v[0-9][a-z0-9]*): the server could not find the requested resource`)
	watchesNamespaces = regexp.MustCompile(`(?i)\bwatch(ing|ed)? (?:only )?namespaces?(?:\(s\))?(?:[^a-z0-9-]|$)(.*)`)
	loggedValue       = regexp.MustCompile(`^\W*\bnamespaces?"?\s*[:=]\s*(\[[^\]]*\]|"[^"]*"|[^\s"}]*)`)
	furtherValue      = regexp.MustCompile(`"(?:[a-zA-Z]+\W?)?[nN]amespaces?"\s*:\s*(\[[^\]]*\]|"[^"]*")`)
	endOfMessage      = regexp.MustCompile(`^([^"{]+)"\s*(?:,\s*"[^"]*"\s*:.*)?\}$`) // in a line of JSON
	namespaceName     = regexp.MustCompile(`[a-z0-9](?:[a-z0-9-]*[a-z0-9])?`)
	controllerName    = regexp.MustCompile(`"?controller"?[:=]\s*"?([^",\s}]+)`)
	// loggerName has the name of the controller in controller-runtime 0.7 to 0.11.
	loggerName = regexp.MustCompile(`(?:^|[\s".])controller\.([A-Za-z0-9-]+)["\s]`)
)

// readiness follows the log of the operator.
type readiness struct {
	mu        sync.Mutex
	announced map[string]bool  // controllers, by name; those without a name count as one
	started   map[string]bool  // controllers whose workers run
	leader    bool             // it waits, or waited, for a lease
	lease     string           // namespace and name of the lease, if the log has them
	wanted    []project.Wanted // kinds that the cluster does not have
	watched   []string         // namespaces that it logs to watch; empty if unknown, or all
	podOnly   bool             // it reads only the in-cluster configuration, and there is none
	denied    bool             // it may not list or watch something
	said      bool

	workersRun chan struct{} // closed when the workers of all controllers run
	lacks      chan struct{} // receives something when another kind is known to be missing
}

func newReadiness() *readiness {
	return &readiness{announced: map[string]bool{}, started: map[string]bool{}, workersRun: make(chan struct{}), lacks: make(chan struct{}, 1)}
}

// read takes notice of a line. Controllers announce themselves before their workers start, and all at about the same time.
// Those that are set up later, for example when there is a certificate, are followed as well.
func (r *readiness) read(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if wanted, found := wantedIn(line); found && !slices.Contains(r.wanted, wanted) {
		r.wanted = append(r.wanted, wanted)
		select {
		case r.lacks <- struct{}{}:
		default:
		}
	}
	if outside.MatchString(line) {
		r.podOnly = true
	}
	if match := forbidden.FindStringSubmatch(line); match != nil && (match[1] == "list" || match[1] == "watch") || forbiddenWatch.MatchString(line) {
		r.denied = true
	}
	if match := watchesNamespaces.FindStringSubmatch(line); match != nil {
		r.watched = namespacesIn(match[2], strings.EqualFold(match[1], "ing"))
	}
	switch {
	case workersStart.MatchString(line):
		r.started[nameIn(line)] = true
	case controllerStarts.MatchString(line):
		r.announced[nameIn(line)] = true
	default:
		if match := waitsForLease.FindStringSubmatch(line); match != nil {
			r.leader, r.lease = true, match[1]
		}
	}
	if !r.said && len(r.started) > 0 && len(r.idleLocked()) == 0 {
		r.said = true
		close(r.workersRun)
	}
}

// readsOnlyInCluster reports whether the log says that there is no in-cluster configuration.
func (r *readiness) readsOnlyInCluster() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.podOnly
}

// idle returns the controllers that the log announces, and whose workers it does not report to run.
func (r *readiness) idle() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.idleLocked()
}

// waitsForRights returns the controllers that have not started, if the log says that the operator may not list or watch something.
func (r *readiness) waitsForRights() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.denied {
		return nil
	}
	return r.idleLocked()
}

func (r *readiness) idleLocked() (names []string) {
	for name := range r.announced {
		if !r.started[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// wantedIn finds the kind in a line about one that the cluster does not have.
func wantedIn(line string) (wanted project.Wanted, found bool) {
	if match := kindIsMissing.FindStringSubmatch(line); match != nil {
		group, _, _ := strings.Cut(match[2], "/")
		return project.Wanted{Group: group, Kind: match[1]}, strings.Contains(match[2], "/")
	}
	if match := resourceIsMissing.FindStringSubmatch(line); match != nil {
		return project.Wanted{Group: match[2], Resource: match[1]}, true
	}
	if match := versionIsMissing.FindStringSubmatch(line); match != nil {
		return project.Wanted{Group: match[1], Version: match[2]}, true
	}
	return wanted, false
}

// namespacesIn reads names from the end of a line, as text, JSON or key and value. A name before other values counts only after
// "watching namespace": "watch namespace configured" names none.
//
//	a,b
//	a {"version": "1"}
//	a","version":"1"}
//	","namespaces":["a","b"]}
//	{"namespace": "a"}
//	namespaces=a
func namespacesIn(text string, watching bool) (names []string) {
	text = strings.TrimSpace(text)
	if match := loggedValue.FindStringSubmatch(text); match != nil {
		text = match[1]
	} else if match := endOfMessage.FindStringSubmatch(text); match != nil {
		return namespacesIn(match[1], watching)
	} else if before, values, has := strings.Cut(text, "{"); has { // a structured log, with other values before it
		if match := furtherValue.FindStringSubmatch(values); match != nil {
			text = match[1]
		} else if text = strings.TrimSpace(before); !watching || text == "all" || namespaceName.FindString(text) != text {
			return nil
		}
	} else if text, _, _ = strings.Cut(text, " "); strings.EqualFold(text, "all") {
		return nil
	}
	return namespaceName.FindAllString(text, -1)
}

func nameIn(line string) string {
	for _, names := range []*regexp.Regexp{controllerName, loggerName} {
		if match := names.FindStringSubmatch(line); match != nil {
			return match[1]
		}
	}
	return ""
}

func (r *readiness) waits() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.leader
}

// missing are the kinds that the cluster does not have, by the log.
func (r *readiness) missing() []project.Wanted {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.wanted)
}

// watches returns the namespaces that the operator watches according to its log; empty if unknown, or all.
func (r *readiness) watches() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.watched)
}

// wantedLease returns the namespace and name of the lease that it requested; empty if there is none.
func (r *readiness) wantedLease() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lease
}

// awaitReady waits until the operator is known to work, and returns its stage, or that it lacks a kind. It returns
// nothing if the operator or the context ends. The probe's address may be empty.
func (p *process) awaitReady(ctx context.Context, probe string) stage {
	return p.await(ctx, probe, p.ready.lacks)
}

// awaitLacking is the same for an operator that lacks a kind, which may do its work nevertheless. One that did its work
// before the log reported the kind still does, unless a controller has not started.
func (p *process) awaitLacking(ctx context.Context, probe string) stage {
	reached := p.await(ctx, probe, nil)
	if silent := reached == probed || reached == alive; silent && !p.worked || reached != "" && len(p.ready.idle()) > 0 {
		return lacking // a controller may not have started
	}
	return reached
}

func (p *process) await(ctx context.Context, probe string, lacks <-chan struct{}) stage {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var answers chan struct{}
	if probe != "" {
		answers = make(chan struct{})
		go awaitProbe(ctx, probe, answers)
	}
	survived := time.NewTimer(survival)
	defer survived.Stop()
	var silent <-chan time.Time
	for {
		select {
		case <-lacks: // also if other controllers run
			return lacking
		default:
		}
		select {
		case <-p.ready.workersRun:
			return reconciling
		case <-lacks:
			return lacking
		case <-answers:
			answers, silent = nil, time.After(silence)
		case <-silent:
			if !p.ready.waits() {
				return probed
			}
			silent = nil
		case <-survived.C:
			if p.ready.waits() && time.Since(p.began) < leasePatience {
				survived.Reset(survival)
				continue
			}
			return alive
		case <-p.done:
			return ""
		case <-ctx.Done():
			return ""
		}
	}
}

func awaitProbe(ctx context.Context, address string, answers chan<- struct{}) {
	ticker := time.NewTicker(probeInterval)
	defer ticker.Stop()
	client := &http.Client{Timeout: time.Second}
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", http.NoBody)
		if err != nil {
			return
		}
		response, err := client.Do(request)
		if err != nil {
			continue
		}
		response.Body.Close()
		if response.StatusCode == http.StatusOK {
			close(answers)
			return
		}
	}
}
