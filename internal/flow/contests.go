// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ReasonContested means that another writer sets a field of a child again whenever it is corrected, or deletes the child whenever it is
// created.
const ReasonContested = "FieldContested"

const (
	// contestAfter is how many times in a row the same fields are corrected before it counts as a contest. A person
	// never comes close to it.
	contestAfter = 16
	// contestAfterAny is the same for fields that have another value each time. A controller that reverts our corrections mostly
	// sets the same one.
	contestAfterAny = 100
	// contestWithin is how soon a field must usually be set again to count as a reaction to our correction.
	contestWithin = 10 * time.Second
	// maxBetween is how many corrections of other fields can lie between two corrections in a row. A rival answers each
	// correction, so only other rivals get in between. A script that edits at random usually takes longer to come back.
	maxBetween = 2
	// firstTruce and lastTruce bound the pauses between repairs in a contest. The first one is short, so little is lost
	// if the writer is no rival after all.
	firstTruce = time.Second
	lastTruce  = 5 * time.Minute
)

// contests detects other controllers that revert our corrections, and prevents an endless fight: such a child is
// corrected less and less often, and the status of its owner contains the reason.
//
// Every write to an existing child counts, and every creation, whatever the writer has changed, because it may also remove what tells that the
// configuration has not changed. Each set of fields has its own count, so several writers do not hide each other. The
// counts of a child are not dropped with it: for a cache, a child whose label is removed is deleted.
type contests struct {
	mutex    sync.Mutex
	children map[childOf]*struggle
	// swept is when the counts that are over were last dropped.
	swept time.Time
}

// childOf names a child by its owner. It is the same child after it was replaced.
type childOf struct {
	owner types.UID
	child string
	// metadata is for children whose metadata is corrected apart from the rest: many corrections of the one can lie
	// between two of the other, although a rival sets both again.
	metadata bool
}

// repetition identifies a write: the same configuration for the same child, because of the same fields, which are one in
// each line of the signature.
type repetition struct {
	childOf
	hash, signature string
	// values stands for the values of the fields.
	values string
}

// struggle holds what is counted for a child, by signature.
type struggle struct {
	hash   string
	writes map[string]*contest
}

type contest struct {
	// last is the time of the last write, and rounds how often in a row it was made.
	last   time.Time
	rounds int
	// values are the ones that the fields last had, and same how often in a row they were these.
	values string
	same   int
	// between is how many corrections of other fields were made since.
	between int
	// truce is how long we wait before the next repair; 0 if there is no contest.
	truce time.Duration
	// within is how soon the next write must be needed to count as one in a row.
	within time.Duration
}

// isOver reports whether the fields have matched the configuration for longer than a truce, or while others were corrected.
func (c *contest) isOver(now time.Time) bool {
	return c.between > maxBetween || now.Sub(c.last) > max(c.within, 2*c.truce)
}

// isFought reports whether it is time to make pauses.
func (c *contest) isFought(values string) bool {
	return c.values == values && c.same >= contestAfter || c.rounds >= contestAfterAny
}

// wait returns how long a write has to wait, which is 0 unless there is a contest, and how often in a
// row it was made.
func (c *contests) wait(write repetition, now time.Time) (wait time.Duration, rounds int) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	child := c.children[write.childOf]
	if child == nil || child.hash != write.hash {
		return 0, 0
	}
	known := child.writes[write.signature]
	if known == nil || known.isOver(now) || !known.isFought(write.values) {
		return 0, 0
	}
	if known.truce == 0 {
		// Where reactions take longer, a round costs more.
		known.truce = max(firstTruce, known.within/10)
	}
	return max(0, known.last.Add(known.truce).Sub(now)), known.rounds
}

// count is called after such a write. One that the server has refused does not count. within is how soon the next one must be needed to
// count as a reaction to it.
func (c *contests) count(write repetition, within time.Duration, now time.Time) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.children == nil {
		c.children = map[childOf]*struggle{}
	}
	if now.Sub(c.swept) > contestWithin {
		c.swept = now
		maps.DeleteFunc(c.children, func(_ childOf, child *struggle) bool { return child.sweep(now) })
	}
	child := c.children[write.childOf]
	if child == nil || child.hash != write.hash {
		// Another configuration is our own wish, and no reaction of a rival: it ends what was counted for the one before, so
		// that two which take turns are no contest.
		child = &struggle{hash: write.hash, writes: map[string]*contest{}}
		c.children[write.childOf] = child
	}
	known := child.writes[write.signature]
	if known == nil || known.isOver(now) {
		known = &contest{within: within}
		child.writes[write.signature] = known
	}
	for signature, other := range child.writes {
		if haveFieldsInCommon(signature, write.signature) {
			other.between = 0
		} else {
			other.between++
		}
	}
	if known.truce = min(2*known.truce, lastTruce); !known.isFought(write.values) {
		known.truce = 0
	}
	if known.values != write.values {
		known.values, known.same = write.values, 0
	}
	known.same++
	known.rounds++
	known.last = now
}

// deletedChild is the signature of creating a child that was deleted.
const deletedChild = "deleted"

// forgive resets the count of a write that no other writer caused.
func (c *contests) forgive(child childOf, signature string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if known := c.children[child]; known != nil {
		delete(known.writes, signature)
	}
}

// sweep drops what is over, and reports whether nothing is left.
func (s *struggle) sweep(now time.Time) bool {
	maps.DeleteFunc(s.writes, func(_ string, known *contest) bool { return known.isOver(now) })
	return len(s.writes) == 0
}

func haveFieldsInCommon(a, b string) bool {
	if a == b {
		return true
	}
	fields := strings.Split(a, "\n")
	for field := range strings.SplitSeq(b, "\n") {
		if field != "" && slices.Contains(fields, field) {
			return true
		}
	}
	return false
}

// contested is the outcome while a write waits.
func contested(name, fields string, wait time.Duration, rounds int) error {
	return Within(wait, Stalled(ReasonContested, fmt.Errorf(
		"%s is changed again after each correction, %d times so far: %s; stop that writer, or configure it to leave these fields alone",
		name, rounds, fields)))
}

// MayRestore must be called before a child that is not applied is corrected. The error is the outcome if the
// correction has to wait because another writer reverts it again and again. The function is to be called when it succeeded.
// Each of the fields is a text about one that differs, and values are what they have now, as anything that has a JSON.
func (p *Pass) MayRestore(object client.Object, fields []string, values any) (restored func(), err error) {
	return p.MayReplace(object, fields, values, contestWithin)
}

// MayReplace is MayRestore for a child that is deleted because of its drift, and recreated under the same name. within is
// how soon the next child must differ in the same fields to count as a reaction.
func (p *Pass) MayReplace(object client.Object, fields []string, values any, within time.Duration) (replaced func(), err error) {
	return p.mayWrite(p.correctionOf(object, fields, values), strings.Join(fields, ", "), within)
}

// Contested returns how long the correction of a child in these fields, which have these values, has to wait; 0 if it need not.
func (p *Pass) Contested(object client.Object, fields []string, values any) time.Duration {
	wait, _ := p.contests.wait(p.correctionOf(object, fields, values), p.now)
	return wait
}

// correctionOf identifies the correction of a child that is not applied.
func (p *Pass) correctionOf(object client.Object, fields []string, values any) repetition {
	data, _ := json.Marshal(values)
	sum := sha256.Sum256(data)
	write := repetition{childOf: p.childOf(object), signature: strings.Join(fields, "\n"), values: string(sum[:])}
	write.metadata = !slices.ContainsFunc(fields, func(field string) bool { return !strings.HasPrefix(field, "metadata.") })
	return write
}

// mayWrite decides whether a correction has to wait. The fields are for the message.
func (p *Pass) mayWrite(write repetition, fields string, within time.Duration) (written func(), err error) {
	wait, rounds := p.contests.wait(write, p.now)
	switch {
	case wait > 0 && write.signature == deletedChild:
		return nil, Within(wait, Stalled(ReasonContested, fmt.Errorf("%s is deleted again each time it is created, %d times so far; stop that client", write.child, rounds)))
	case wait > 0:
		return nil, contested(write.child, fields, wait, rounds)
	}
	return func() { p.contests.count(write, within, p.now) }, nil
}

// childOf names a child in contests. They are about names, because a child that is recreated has another UID.
func (p *Pass) childOf(object client.Object) childOf {
	return childOf{owner: p.owner.GetUID(), child: describe(object, object.GetName())}
}
