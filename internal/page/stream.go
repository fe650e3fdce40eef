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
	// lookInterval is the interval at which findings are checked.
	lookInterval = time.Second
	// heartbeat is how often a silent stream shows that it is alive.
	heartbeat = 10 * time.Second
	// writeTimeout is how long a client may take to read an answer, or a message of a stream, before it is given up.
	writeTimeout = 10 * time.Second
)

// serveStream sends changes of the tree and of objects, traffic, the state of the operator, and
// findings. A client that reads slowly gets fewer and larger messages; only its position is
// kept.
func (s *Server) serveStream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	out := events{sse.NewWriter(w, writeTimeout)}
	if r.Method == http.MethodHead {
		return
	}
	at, back := s.resume(r)
	pulse := time.NewTicker(heartbeat)
	defer pulse.Stop()
	look := time.NewTicker(lookInterval)
	defer look.Stop()
	known := uint64(0)       // of the operator
	var found findingMessage // the last messages
	for first := true; ; first = false {
		// Taken before reading, so nothing is missed.
		news := []<-chan struct{}{s.options.Tree.Next(), s.options.Changes.next(), s.options.Operator.next(), s.options.Traffic.next()}
		message := s.treeSince(at.revision)
		if first || message.Revision != at.revision {
			at.revision = message.Revision
			if out.send("tree", s.name(at), message) != nil {
				return
			}
		}
		if batch := s.options.Changes.since(at.changes); batch.Last != at.changes {
			at.changes = batch.Last
			if first && !back {
				batch.Lost = 0 // earlier entries do not count as missed
			}
			if out.send("changes", s.name(at), batch) != nil {
				return
			}
		}
		if s.sendTraffic(out, &at, first && !back) != nil {
			return
		}
		var operator *operatorMessage
		if operator, known = s.options.Operator.since(known); operator != nil {
			if out.send("operator", s.name(at), operator) != nil {
				return
			}
		}
		// Findings end after a while without events, so they are checked regularly.
		now := findingMessage{s.options.Findings.At(time.Now())}
		if first || !slices.Equal(now.Findings, found.Findings) {
			found = now
			if out.send("findings", s.name(at), found) != nil {
				return
			}
		}
		if out.Flush() != nil || !s.awaitNews(r, out, pulse, look, news...) {
			return
		}
	}
}

// findingMessage holds the current findings; it may be empty.
type findingMessage struct {
	Findings []findings.Finding `json:"findings"`
}

// awaitNews returns false when the client is gone.
func (s *Server) awaitNews(r *http.Request, out events, pulse, look *time.Ticker, news ...<-chan struct{}) bool {
	var calmed <-chan time.Time
	tree, changes, operator, traffic := news[0], news[1], news[2], news[3]
	for {
		select {
		case <-tree:
			tree = nil
		case <-changes:
			changes = nil
		case <-operator:
			operator = nil
		case <-traffic:
			traffic = nil
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

// sendTraffic sends all that went over the wire since, in several messages if it is much.
func (s *Server) sendTraffic(out events, at *position, fresh bool) error {
	for {
		message, last := s.options.Traffic.since(at.traffic)
		if last == at.traffic {
			return nil
		}
		at.traffic = last
		if fresh {
			message.Lost = 0
		}
		if err := out.send("traffic", s.name(*at), message); err != nil {
			return err
		}
	}
}

// position is how far a client has come.
type position struct{ revision, changes, traffic uint64 }

func (s *Server) name(at position) string {
	return fmt.Sprintf("%s-%d-%d-%d", s.instance, at.revision, at.changes, at.traffic)
}

// resume reads the position of a returning client, if it was connected to this server before. A
// page that opens a new stream sends it as a parameter, because browsers send the header only
// if they reconnect themselves.
func (s *Server) resume(r *http.Request) (at position, back bool) {
	parts := strings.Split(cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("after")), "-")
	numbers := []*uint64{&at.revision, &at.changes, &at.traffic}
	if len(parts) != 1+len(numbers) || parts[0] != s.instance {
		return position{}, false
	}
	for i, number := range numbers {
		var err error
		if *number, err = strconv.ParseUint(parts[1+i], 10, 64); err != nil {
			return position{}, false
		}
	}
	return at, true
}

// events writes the messages to a page.
type events struct{ *sse.Writer }

func (e events) send(name, id string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return e.Event(name, id, data)
}
