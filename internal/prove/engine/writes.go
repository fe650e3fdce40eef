// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opdock/opdock/internal/lens"
)

// Families that disturb writes.

// beforeLater is how much less a crash before an answer tells: the operator is dead before its next write in both cases.
const beforeLater = 5

func crashPlans(c *campaign) (plans []*Plan) {
	c.moments(func(step int, w *write, rank int) {
		for i, variant := range []struct{ name, says string }{{"after", "after the answer to"}, {"before", "before the answer to"}} {
			plans = append(plans, &Plan{
				Family: "crash", Variant: variant.name, Step: step, At: &w.Moment, rank: rank + beforeLater*i,
				Says: fmt.Sprintf("The operator is killed %s %s arrives, and started again", variant.says, w.Moment),
			})
		}
	})
	return plans
}

// grace is how long an answer takes to arrive at most.
const grace = 30 * time.Millisecond

func crash(r *run, p *Plan) (*disturbance, error) {
	var once sync.Once
	var dead atomic.Bool
	return &disturbance{counts: true, mustHit: true, faults: &faults{
		request: func(ctx context.Context, _ Moment) lens.Verdict {
			if !dead.Load() {
				return lens.Verdict{}
			}
			<-ctx.Done() // it is killed before it can write anything else
			return lens.Verdict{Action: lens.Abort}
		},
		answer: func(_ context.Context, m Moment, status int) (verdict lens.Verdict) {
			if m != *p.At || status >= http.StatusBadRequest {
				return verdict
			}
			once.Do(func() {
				dead.Store(true)
				r.board.hit()
				if p.Variant == "before" {
					verdict = lens.Verdict{Action: lens.Abort, Say: "killed before the answer"}
					go r.crashed(&dead, 0)
					return
				}
				verdict = lens.Verdict{Say: "killed after the answer"}
				go r.crashed(&dead, grace)
			})
			return verdict
		},
	}}, nil
}

// crashed kills the operator after a while; settling restarts it.
func (r *run) crashed(dead *atomic.Bool, after time.Duration) {
	if after > 0 {
		timer := time.NewTimer(after)
		defer timer.Stop()
		<-timer.C
	}
	r.note("the operator is killed")
	r.kill()
	dead.Store(false)
}

func lostPlans(c *campaign) (plans []*Plan) {
	c.moments(func(step int, w *write, rank int) {
		plans = append(plans, &Plan{
			Family: "lost", Variant: "answer", Step: step, At: &w.Moment, rank: rank,
			Says: fmt.Sprintf("%s takes effect, and its answer is lost", w.Moment),
		})
	})
	return plans
}

func lose(r *run, p *Plan) (*disturbance, error) {
	var once sync.Once
	return &disturbance{counts: true, mustHit: true, faults: &faults{
		answer: func(_ context.Context, m Moment, status int) (verdict lens.Verdict) {
			if m == *p.At && status < http.StatusBadRequest {
				once.Do(func() {
					r.board.hit()
					verdict = lens.Verdict{Action: lens.Abort, Say: "the answer is lost"}
				})
			}
			return verdict
		},
	}}, nil
}

// refusals are how a write can be refused.
var refusals = []struct {
	name, says string
	code       int32
	reason     metav1.StatusReason
	message    string
	times      int // 0 for as long as it lasts
}{
	{"error", "an internal error", http.StatusInternalServerError, metav1.StatusReasonInternalError, "Internal error occurred: etcdserver: request timed out", 1},
	{"conflict", "a conflict, three times", http.StatusConflict, metav1.StatusReasonConflict, "Operation cannot be fulfilled: the object has been modified; please apply your changes to the latest version and try again", 3},
	{"denied", "an admission webhook that denies it, until it allows it again", http.StatusForbidden, metav1.StatusReasonForbidden, `admission webhook "policy.example.com" denied the request: not now`, 0},
	{"timeout", "a timeout", http.StatusGatewayTimeout, metav1.StatusReasonTimeout, "Timeout: request did not complete within requested timeout", 1},
	{"error-3", "an internal error, three times", http.StatusInternalServerError, metav1.StatusReasonInternalError, "Internal error occurred: etcdserver: leader changed", 3},
	{"quota", "a quota that is exhausted, until it is raised", http.StatusForbidden, metav1.StatusReasonForbidden, "exceeded quota: small, requested: count=1, used: count=1, limited: count=1", 0},
	{"busy", "too many requests, without a time to retry after", http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "the server has received too many requests and has asked us to try again later", 1},
	{"right", "a revoked right, until it is granted again", http.StatusForbidden, metav1.StatusReasonForbidden, "forbidden: the right was revoked", 0},
	{"conflict-1", "a conflict", http.StatusConflict, metav1.StatusReasonConflict, "Operation cannot be fulfilled: the object has been modified; please apply your changes to the latest version and try again", 1},
}

func refusedPlans(c *campaign) (plans []*Plan) {
	c.moments(func(step int, w *write, rank int) {
		for i, how := range refusals {
			if how.reason == metav1.StatusReasonConflict && w.Verb == "create" || how.name == "quota" && w.Verb != "create" {
				continue
			}
			plans = append(plans, &Plan{
				Family: "refused", Variant: how.name, Step: step, At: &w.Moment, rank: rank + 2*i, // other moments tell more than other refusals of one
				Says: fmt.Sprintf("%s is answered with %s", w.Moment, how.says),
			})
		}
	})
	return plans
}

func refuse(r *run, p *Plan) (*disturbance, error) {
	for _, how := range refusals {
		if how.name != p.Variant {
			continue
		}
		var refused atomic.Int32
		d := &disturbance{counts: true, mustHit: true}
		d.faults = &faults{request: func(_ context.Context, m Moment) lens.Verdict {
			at := *p.At
			if how.times != 1 {
				at.Nth, m.Nth = 0, 0 // further attempts have other numbers
				if refused.Load() == 0 && r.nth(*p.At) < p.At.Nth {
					return lens.Verdict{}
				}
			}
			if m != at || how.times > 0 && int(refused.Load()) >= how.times {
				return lens.Verdict{}
			}
			refused.Add(1)
			r.board.hit()
			return lens.Verdict{Action: lens.Refuse, Say: "refused: " + how.says, Answer: &metav1.Status{
				Status: metav1.StatusFailure, Code: how.code, Reason: how.reason, Message: how.message,
			}}
		}}
		if how.times == 0 {
			d.nudge = r.nudge
			d.heal = func(context.Context) error {
				r.board.calm()
				return nil
			}
		}
		return d, nil
	}
	return nil, fmt.Errorf("there is no refusal %q", p.Variant)
}

// nth is how often a kind of write was seen in this step.
func (r *run) nth(m Moment) int {
	m.Nth = 0
	r.board.mutex.Lock()
	defer r.board.mutex.Unlock()
	return r.board.counts[m]
}

func slowPlans(c *campaign) (plans []*Plan) {
	for step := range c.o.Steps {
		plans = append(plans,
			&Plan{Family: "slow", Variant: "answers", Step: step, Says: "Each answer takes a second"},
			&Plan{Family: "slow", Variant: "watches", Step: step, rank: 1, Says: "All watches break at their first event, and the resource version to continue from has expired"})
	}
	return plans
}

func slow(r *run, p *Plan) (*disturbance, error) {
	if p.Variant == "watches" {
		return breakWatches(r), nil
	}
	const delay = time.Second
	var over atomic.Bool
	wait := func(ctx context.Context) lens.Verdict {
		if over.Load() {
			return lens.Verdict{}
		}
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		r.board.hit()
		return lens.Verdict{Say: "slow"}
	}
	return &disturbance{counts: true, faults: &faults{
		request: func(ctx context.Context, _ Moment) lens.Verdict { return wait(ctx) },
		any: func(ctx context.Context, call *lens.Call) lens.Verdict {
			if call.Request.Verb == "watch" || neverEnds(call.Request.Resource) {
				return lens.Verdict{}
			}
			return wait(ctx)
		},
	}, heal: func(context.Context) error {
		over.Store(true) // an operator that sends many requests one after the other is not at its end yet, and not to blame
		return nil
	}}, nil
}

// breakWatches ends each watch at its next event, once, and lets the client list again.
func breakWatches(r *run) *disturbance {
	var mutex sync.Mutex
	broken := map[uint64]bool{}
	expired := map[string]bool{}
	return &disturbance{counts: true, mustHit: true, faults: &faults{
		deliver: func(_ context.Context, watch *lens.Call, frame *lens.Frame) lens.Verdict {
			mutex.Lock()
			defer mutex.Unlock()
			resource := watch.Request.Resource.Group + "/" + watch.Request.Resource.Resource
			if _, before := expired[resource]; before || broken[watch.Request.ID] || frame.Type == "BOOKMARK" || neverEnds(watch.Request.Resource) {
				return lens.Verdict{}
			}
			broken[watch.Request.ID], expired[resource] = true, true
			r.board.hit()
			return lens.Verdict{Action: lens.End, Say: "the watch breaks"}
		},
		any: func(_ context.Context, call *lens.Call) lens.Verdict {
			mutex.Lock()
			defer mutex.Unlock()
			resource := call.Request.Resource.Group + "/" + call.Request.Resource.Resource
			query := call.Request.Query
			if call.Request.Verb != "watch" || !expired[resource] || query == nil || query.InitialEvents || query.ResourceVersion == "" {
				return lens.Verdict{}
			}
			expired[resource] = false
			return gone()
		},
	}}
}

// gone is the response to a client that continues from an expired resource version. The client then lists
// again.
func gone() lens.Verdict {
	return lens.Verdict{Action: lens.Refuse, Say: "the resource version is too old", Answer: &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusGone, Reason: metav1.StatusReasonExpired, Message: "too old resource version",
	}}
}
