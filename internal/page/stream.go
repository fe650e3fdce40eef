// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/opdock/opdock/internal/findings"
	"github.com/opdock/opdock/internal/sse"
)

const (
	// calm is the least time between two messages to a page: a rollout changes a lot within moments.
	calm = 100 * time.Millisecond
	// lookInterval is how often findings are looked at.
	lookInterval = time.Second
	// heartbeat is how often a silent stream shows that it is alive.
	heartbeat = 10 * time.Second
	// writeTimeout is how long a client may take to read an answer, or a message of a stream, before it is given up.
	writeTimeout = 10 * time.Second
)

// serveStream sends what changes in the tree, the changes of objects, what becomes of the operator, and what goes wrong. A
// client that reads slowly gets fewer and larger messages; nothing is kept for it but how far it has come.
func (s *Server) serveStream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	out := events{sse.NewWriter(w, writeTimeout)}
	if r.Method == http.MethodHead {
		return
	}
	revision, seen, back := s.resume(r)
	pulse := time.NewTicker(heartbeat)
	defer pulse.Stop()
	look := time.NewTicker(lookInterval)
	defer look.Stop()
	known := uint64(0)       // of the operator
	var found findingMessage // what was said last
	for first := true; ; first = false {
		// Taken before looking, so that nothing that happens meanwhile is missed.
		treeChanged, objectChanged, operatorChanged := s.options.Tree.Next(), s.options.Changes.next(), s.options.Operator.next()
		message := s.treeSince(revision)
		if first || message.Revision != revision {
			revision = message.Revision
			if out.send("tree", s.position(revision, seen), message) != nil {
				return
			}
		}
		if batch := s.options.Changes.since(seen); batch.Last != seen {
			seen = batch.Last
			if first && !back {
				batch.Lost = 0 // what went on before somebody came is not missed
			}
			if out.send("changes", s.position(revision, seen), batch) != nil {
				return
			}
		}
		var operator *operatorMessage
		if operator, known = s.options.Operator.since(known); operator != nil {
			if out.send("operator", s.position(revision, seen), operator) != nil {
				return
			}
		}
		// Findings are over after a while in which nothing happens, so they are looked at regularly.
		now := findingMessage{s.options.Findings.At(time.Now())}
		if first || !slices.Equal(now.Findings, found.Findings) {
			found = now
			if out.send("findings", s.position(revision, seen), found) != nil {
				return
			}
		}
		if out.Flush() != nil || !s.awaitNews(r, out, pulse, look, treeChanged, objectChanged, operatorChanged) {
			return
		}
	}
}

// findingMessage is what goes wrong now; nothing, if it is empty.
type findingMessage struct {
	Findings []findings.Finding `json:"findings"`
}

// awaitNews returns false when the client is gone.
func (s *Server) awaitNews(r *http.Request, out events, pulse, look *time.Ticker, news ...<-chan struct{}) bool {
	var calmed <-chan time.Time
	tree, changes, operator := news[0], news[1], news[2]
	for {
		select {
		case <-tree:
			tree = nil
		case <-changes:
			changes = nil
		case <-operator:
			operator = nil
		case <-calmed:
			return true
		case <-look.C:
			if s.options.Findings == nil {
				continue
			}
		case <-pulse.C:
			if out.Comment("alive") != nil || out.Flush() != nil {
				return false
			}
			continue
		case <-r.Context().Done():
			return false
		}
		if calmed == nil {
			calmed = time.After(calm)
		}
	}
}

func (s *Server) position(revision, seen uint64) string {
	return fmt.Sprintf("%s-%d-%d", s.instance, revision, seen)
}

// resume reads how far a client had come that is back, if it was with this server. A page that opens a stream anew says so by
// a parameter, because browsers send the header only if they open it again themselves.
func (s *Server) resume(r *http.Request) (revision, seen uint64, back bool) {
	parts := strings.Split(cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("after")), "-")
	if len(parts) != 3 || parts[0] != s.instance {
		return 0, 0, false
	}
	revision, errRevision := strconv.ParseUint(parts[1], 10, 64)
	seen, errSeen := strconv.ParseUint(parts[2], 10, 64)
	if errRevision != nil || errSeen != nil {
		return 0, 0, false
	}
	return revision, seen, true
}

// events are what a page is sent.
type events struct{ *sse.Writer }

func (e events) send(name, id string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return e.Event(name, id, data)
}
