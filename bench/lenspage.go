// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"
)

func (r *lensed) page(e environment, took time.Duration) string {
	return sectionPage("lens", "The lens", took, func(p printer) {
		r.fleet.write(p)
		r.writeRequests(p)
		r.writeFlood(p, e.lensWrites)
		r.builds.write(p)
	}, r.goals())
}

func mib[T int64 | uint64 | int](bytes T) string {
	return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
}

func (r *lensed) writeRequests(p printer) {
	p("One client without a rate limit sends requests directly and through the lens, in turns. The table shows medians of %d requests each. The lens and its", lensRequests)
	p("client run in one process, so the CPU time includes both. For watch events, %d watches go through the lens and %d are direct, while their", lensWatches, lensWatches)
	p("objects are written %d times per second for %s. So the target is %d events per second through the lens. This run reached %.0f. Each event is compared", lensRate/lensWatches, lensFor, lensRate, r.rate)
	p("with the same event of a direct watch. The added time is negative if most events arrived through the lens first. This happens when")
	p("both sides compete for the same cores.\n")
	p("| | directly | through the lens | added |")
	p("|---|---:|---:|---:|")
	p("| get | %s | %s | %s |", us(r.get[0]), us(r.get[1]), us(r.get[1]-r.get[0]))
	p("| update | %s | %s | %s |", us(r.update[0]), us(r.update[1]), us(r.update[1]-r.update[0]))
	p("| watch event (%d) | | | %s |", r.events, us(r.added))
	p("| CPU per write | %s | %s | %s |", us(r.cpu[0]), us(r.cpu[1]), us(r.cpu[1]-r.cpu[0]))
}

func (r *lensed) writeFlood(p printer, writes int) {
	p("\nThe flood sends %d writes as fast as possible, with a recording of at most %s. For a longer flood, use `-lens-writes`.\n", writes, mib(lensRecording))
	p("| flood | after 1/4 | 1/2 | 3/4 | at the end | recording | writes per second |")
	p("|---|---:|---:|---:|---:|---:|---:|")
	p("| heap in use | %s | %s | %s | %s | %s | %.0f |\n", mib(r.heaps[0]), mib(r.heaps[1]), mib(r.heaps[2]), mib(r.heaps[3]), mib(r.recording),
		float64(writes)/r.flood.Seconds())
}

func (r *lensed) goals() []goal {
	// The stream of the lens keeps up to 32 MiB of events, and may not be full after the first quarter.
	const kept = 32 << 20
	least, most := r.heaps[0], r.heaps[len(r.heaps)-1]
	within := func(added time.Duration) bool { return added <= time.Millisecond }
	return []goal{
		{
			fmt.Sprintf("%d AppServices until Ready through the lens, against directly", lensApps), fmt.Sprintf("at most %.2f ×", lensLimit),
			times(r.fleet.ratio()), r.fleet.ratio() <= lensLimit,
		},
		{"added to a get, median", "≤ 1 ms", us(r.get[1] - r.get[0]), within(r.get[1] - r.get[0])},
		{"added to an update, median", "≤ 1 ms", us(r.update[1] - r.update[0]), within(r.update[1] - r.update[0])},
		// At a lower rate, the result shows nothing about the goal.
		{
			"added to a watch event, median", fmt.Sprintf("≤ 1 ms at %d/s", lensRate), fmt.Sprintf("%s at %.0f/s", us(r.added), r.rate),
			within(r.added) && r.rate >= 0.95*lensRate,
		},
		{"growth of the heap after the first quarter of the flood", "≤ 32 MiB, which the stream keeps", mib(most) + " after " + mib(least), most <= least+kept},
		{"recording of the flood", "≤ " + mib(lensRecording), mib(r.recording), r.recording <= lensRecording},
		{
			"build with marks, against `go build`, when only the operator changed", fmt.Sprintf("at most %.2f ×", lensBuildLimit),
			times(r.builds.ratio()), r.builds.ratio() <= lensBuildLimit,
		},
	}
}
