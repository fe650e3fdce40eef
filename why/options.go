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

// Options configures a recorder. Each field that is not set has the default that its comment
// names.
type Options struct {
	// MaxRecords and MaxBytes limit the records that are kept, whichever comes first. Defaults: 4096, and 32 MiB.
	// Bytes count the content of records; the memory used is a little more.
	MaxRecords int
	MaxBytes   int
	// MaxPerObject limits the records of one object, so a busy object does not displace all others. Default: 128.
	MaxPerObject int
	// MaxCauses and MaxWrites limit what is kept of one reconcile. Defaults: 16 and 32. Of more causes, the last one
	// and the oldest others are kept. At most MaxCauses causes wait for a reconcile.
	MaxCauses int
	MaxWrites int
	// MaxChanges limits the changed fields that are kept of one event, and MaxValue the bytes of each value. Defaults:
	// 16, 120.
	MaxChanges int
	MaxValue   int
	// MaxCompared limits how many values of an object are compared, so huge objects do not delay others. Default:
	// 20,000.
	MaxCompared int
	// MaxWaiting limits the number of objects of a controller whose causes are kept while they wait to be reconciled.
	// Default: 50,000. If the causes take more than MaxWaitingBytes together (default: 16 MiB), new causes have no
	// changes and writers, and only the first and the last cause of each object are kept.
	MaxWaiting      int
	MaxWaitingBytes int
	// MaxUncompared limits how many events keep their objects, which are compared for many events at once. Default:
	// 128, and as many again while those are compared. Objects are compared at most a second after the event. With 1,
	// they are compared at once, which is slower. Use it if your objects are modified after their events.
	MaxUncompared int
	// MaxEchoes limits how many writes are remembered to recognize the events that they cause. Default: 8192.
	MaxEchoes int

	// LoopFlips is how often a field must go back and forth within LoopWindow to be a loop, after the first two
	// reconciles of an object. Default: 4 times in a minute. LoopLength is how often in a row an object must be
	// reconciled because of its own writes to be a loop. Default: 5.
	LoopFlips  int
	LoopLength int
	LoopWindow time.Duration

	// Scheme defines the kinds of typed objects. Default: the scheme of client-go. ControllerManagedBy adds the scheme
	// of its manager. Unknown kinds get the names of their Go types.
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
