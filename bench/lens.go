// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/lens"
)

const (
	lensRequests = 600
	// lensRate is how many events a watch is sent in a second, for lensFor.
	lensRate = 1000
	lensFor  = 5 * time.Second
	// lensWriters is how many write at a time, each to an object of its own.
	lensWriters = 8
	// lensRecording bounds the recording of the flood: less than a flood of 20,000 writes would need.
	lensRecording = 8 << 20
)

// lensed is what was measured of the lens, with and without it in the same run.
type lensed struct {
	get, update [2]time.Duration // medians, directly and through the lens
	// events arrived at two watches of the same objects; added is the median of how much later they came through the lens.
	events int
	rate   float64
	added  time.Duration
	// cpu is what a write costs this process, client included, directly and through the lens.
	cpu [2]time.Duration
	// heaps are what is in use after each quarter of the flood.
	heaps     []uint64
	flood     time.Duration
	recording int64
}

// lensSection measures what it costs to look at an operator through the lens. The lens and its clients are in this process.
func lensSection(ctx context.Context, e environment) (string, error) {
	began := time.Now()
	var r lensed
	err := withCluster(ctx, cluster.Options{Name: "lens", Binary: e.binary}, func(c *cluster.Cluster, _ int) error {
		proxy, err := lens.Start(ctx, lens.Options{Upstream: c.Config()})
		if err != nil {
			return err
		}
		defer proxy.Close()
		direct, err := mapsOf(c.Config())
		if err != nil {
			return err
		}
		through, err := mapsOf(proxy.Config())
		if err != nil {
			return err
		}
		for i := range lensWriters {
			if _, err := direct.Create(ctx, configMap(i, 0), metav1.CreateOptions{}); err != nil {
				return fmt.Errorf("creating a ConfigMap: %w", err)
			}
		}
		sides := [2]maps{direct, through}
		say("Lens: requests")
		if err := r.measureRequests(ctx, sides); err != nil {
			return err
		}
		say("Lens: watch events")
		if err := r.measureEvents(ctx, sides); err != nil {
			return err
		}
		say("Lens: a flood of %d writes", e.lensWrites)
		return r.measureFlood(ctx, e, proxy, sides)
	})
	if err != nil {
		return "", err
	}
	return r.page(e, time.Since(began)), nil
}

// maps is a client for ConfigMaps.
type maps interface {
	Create(context.Context, *corev1.ConfigMap, metav1.CreateOptions) (*corev1.ConfigMap, error)
	Update(context.Context, *corev1.ConfigMap, metav1.UpdateOptions) (*corev1.ConfigMap, error)
	Get(context.Context, string, metav1.GetOptions) (*corev1.ConfigMap, error)
	watcher
}

func mapsOf(config *rest.Config) (maps, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	return client.CoreV1().ConfigMaps(metav1.NamespaceDefault), nil
}

func configMap(i, value int) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("lens-%d", i)}, Data: map[string]string{"value": strconv.Itoa(value)}}
}

// measureRequests lets both sides take turns.
func (r *lensed) measureRequests(ctx context.Context, sides [2]maps) error {
	var gets, updates [2][]time.Duration
	for i := range lensRequests {
		for side := range sides {
			began := time.Now()
			if _, err := sides[side].Get(ctx, "lens-0", metav1.GetOptions{}); err != nil {
				return fmt.Errorf("reading a ConfigMap: %w", err)
			}
			gets[side] = append(gets[side], time.Since(began))
			began = time.Now()
			if _, err := sides[side].Update(ctx, configMap(0, 2*i+side+1), metav1.UpdateOptions{}); err != nil {
				return fmt.Errorf("updating a ConfigMap: %w", err)
			}
			updates[side] = append(updates[side], time.Since(began))
		}
	}
	for side := range sides {
		r.get[side], r.update[side] = median(gets[side]), median(updates[side])
	}
	return nil
}

// write lets all writers write, so many times in all and at most at a rate; 0 for as fast as they can.
func write(ctx context.Context, side maps, count, rate int) error {
	var working sync.WaitGroup
	problems := make(chan error, lensWriters)
	began := time.Now()
	for writer := range lensWriters {
		working.Go(func() {
			for i := writer; i < count; i += lensWriters {
				if rate > 0 {
					time.Sleep(time.Until(began.Add(time.Duration(i) * time.Second / time.Duration(rate))))
				}
				if _, err := side.Update(ctx, configMap(writer, int(time.Now().UnixNano())), metav1.UpdateOptions{}); err != nil {
					problems <- err
					return
				}
			}
		})
	}
	working.Wait()
	select {
	case err := <-problems:
		return fmt.Errorf("updating a ConfigMap: %w", err)
	default:
		return nil
	}
}

// measureFlood writes directly first, and then much more through a lens that records.
func (r *lensed) measureFlood(ctx context.Context, e environment, proxy *lens.Lens, sides [2]maps) error {
	quarter := e.lensWrites / 4
	path := filepath.Join(e.work, "lens.jsonl")
	recording, err := lens.Record(proxy.Stream(), path, lens.Header{}, lensRecording)
	if err != nil {
		return err
	}
	before := cpuHere()
	if err := write(ctx, sides[0], quarter, 0); err != nil {
		return err
	}
	r.cpu[0] = (cpuHere() - before) / time.Duration(quarter)
	began, before := time.Now(), cpuHere()
	for range 4 {
		if err := write(ctx, sides[1], quarter, 0); err != nil {
			return err
		}
		if err := proxy.Flush(ctx); err != nil {
			return err
		}
		runtime.GC()
		var memory runtime.MemStats
		runtime.ReadMemStats(&memory)
		r.heaps = append(r.heaps, memory.HeapAlloc)
	}
	r.flood, r.cpu[1] = time.Since(began), (cpuHere()-before)/time.Duration(4*quarter)
	if err := proxy.Close(); err != nil {
		return err
	}
	if err := recording.Close(); err != nil {
		return err
	}
	file, err := os.Stat(path)
	if err != nil {
		return err
	}
	r.recording = file.Size()
	return nil
}

// cpuHere is what this process has used.
func cpuHere() time.Duration {
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func (r *lensed) page(e environment, took time.Duration) string {
	us := func(d time.Duration) string { return fmt.Sprintf("%d µs", d.Microseconds()) }
	mib := func(bytes uint64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }
	// The stream of the lens keeps up to 32 MiB of events, and is not full after a short first quarter.
	const kept = 32 << 20
	least, most := r.heaps[0], r.heaps[len(r.heaps)-1]
	return sectionPage("lens", "The lens", took, func(p printer) {
		p("One client without a rate limit, directly and through the lens, taking turns; medians of %d requests each. Watch events are those of %d writers",
			lensRequests, lensWriters)
		p("that make %d changes per second for %s (%.0f per second were reached); both watches get the same events, and each event is compared with itself.",
			lensRate, lensFor, r.rate)
		p("CPU is that of client and lens together. The flood has %d writes (the full one: `-lens-writes 100000`), as fast as they go, and a recording of at most %s.\n",
			e.lensWrites, mib(lensRecording))
		p("| | directly | through the lens | added |")
		p("|---|---:|---:|---:|")
		p("| get | %s | %s | %s |", us(r.get[0]), us(r.get[1]), us(r.get[1]-r.get[0]))
		p("| update | %s | %s | %s |", us(r.update[0]), us(r.update[1]), us(r.update[1]-r.update[0]))
		p("| watch event (%d) | | | %s |", r.events, us(r.added))
		p("| CPU per write | %s | %s | %s |", us(r.cpu[0]), us(r.cpu[1]), us(r.cpu[1]-r.cpu[0]))
		p("\n| flood | after 1/4 | 1/2 | 3/4 | at the end | recording | writes per second |")
		p("|---|---:|---:|---:|---:|---:|---:|")
		p("| heap in use | %s | %s | %s | %s | %s | %.0f |", mib(r.heaps[0]), mib(r.heaps[1]), mib(r.heaps[2]), mib(r.heaps[3]), mib(uint64(r.recording)), //nolint:gosec // a size
			float64(e.lensWrites)/r.flood.Seconds())
	}, []goal{
		{"added to a get, median", "≤ 1 ms", us(r.get[1] - r.get[0]), r.get[1]-r.get[0] <= time.Millisecond},
		{"added to an update, median", "≤ 1 ms", us(r.update[1] - r.update[0]), r.update[1]-r.update[0] <= time.Millisecond},
		// Fewer events than that show nothing about the goal.
		{"added to a watch event, median", fmt.Sprintf("≤ 1 ms at %d/s", lensRate), fmt.Sprintf("%s at %.0f/s", us(r.added), r.rate), r.added <= time.Millisecond && r.rate >= 0.9*lensRate},
		{"growth of the heap after the first quarter of the flood", "≤ 32 MiB, which the stream keeps", mib(most) + " after " + mib(least), most <= least+kept},
		{"recording of the flood", "≤ " + mib(lensRecording), mib(uint64(r.recording)), r.recording <= lensRecording}, //nolint:gosec // a size
	})
}
