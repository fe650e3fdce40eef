// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
)

// Options are the settings of a recorder. The zero value is good: what is not set gets the default that is named with it.
type Options struct {
	// MaxRecords and MaxBytes bound the records that are kept, whichever comes first: 4096, and 32 MiB. Bytes are those of
	// the records' contents, so the memory that is used is a little more.
	MaxRecords int
	MaxBytes   int
	// MaxPerObject bounds the records of a single object, so that one that is busy does not drive out all others: 128.
	MaxPerObject int
	// MaxCauses and MaxWrites bound what is kept of a single reconcile: 16 and 32. Of more causes, the last one and the
	// oldest others are kept; there are never more than MaxCauses waiting for a reconcile either.
	MaxCauses int
	MaxWrites int
	// MaxChanges bounds the fields that are told of a single event, and MaxValue the bytes of each of their values: 16, 120.
	MaxChanges int
	MaxValue   int
	// MaxCompared bounds how many values of an object are compared with those before, so huge objects do
	// not hold up others: 20,000.
	MaxCompared int
	// MaxWaiting bounds for how many objects of a controller causes are kept while they wait to be reconciled: 50,000. If
	// they take more than MaxWaitingBytes together, 16 MiB, those that come are told without what changed and by whom, and
	// only the first and the last one of each object.
	MaxWaiting      int
	MaxWaitingBytes int
	// MaxUncompared bounds how many events are kept with their objects, because these are compared for many events at once:
	// 128, and as many again while those are compared. That is never later than a second after they have happened. With 1, they
	// are compared at once, which takes more time; it is for those whose objects are changed after their events.
	MaxUncompared int
	// MaxEchoes bounds how many writes are remembered so that the events they lead to are recognised: 8192.
	MaxEchoes int

	// LoopFlips is how often a field has to go back and forth within LoopWindow to be called a loop, 4 in a minute, after the
	// first two reconciles of an object; and LoopLength how often in a row an object has to be reconciled because of its own
	// writes: 5.
	LoopFlips  int
	LoopLength int
	LoopWindow time.Duration

	// Scheme knows the kinds of typed objects; that of client-go by default. ControllerManagedBy adds that of its manager.
	// Kinds that none of them knows are called as their Go types.
	Scheme *runtime.Scheme
	// Clock is for tests.
	Clock clock.PassiveClock
	// Logger gets a line per reconcile at level 1, and one at level 0 for each loop, at most one in LoopWindow for the same
	// one; nothing is logged by default.
	Logger logr.Logger
	// Registerer gets the metrics; there are none by default.
	Registerer prometheus.Registerer
	// TracerProvider gets a span per reconcile; there are none by default.
	TracerProvider trace.TracerProvider
}

func (o Options) withDefaults() Options {
	for setting, fallback := range map[*int]int{
		&o.MaxRecords: 4096, &o.MaxBytes: 32 << 20, &o.MaxPerObject: 128, &o.MaxCauses: 16, &o.MaxWrites: 32, &o.MaxChanges: 16,
		&o.MaxValue: 120, &o.MaxCompared: 20_000, &o.MaxWaiting: 50_000, &o.MaxWaitingBytes: 16 << 20, &o.MaxUncompared: 128, &o.MaxEchoes: 8192,
		&o.LoopFlips: 4, &o.LoopLength: 5,
	} {
		if *setting <= 0 {
			*setting = fallback
		}
	}
	if o.LoopWindow <= 0 {
		o.LoopWindow = time.Minute
	}
	if o.Scheme == nil {
		o.Scheme = clientgoscheme.Scheme
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Logger.GetSink() == nil {
		o.Logger = logr.Discard()
	}
	return o
}
