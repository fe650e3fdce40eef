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
	// lensRate is the number of events per second that pass the lens, for lensFor. lensWatches watches of the same
	// objects multiply the events, because two cores cannot write that many objects and serve the watches.
	lensRate    = 1000
	lensWatches = 10
	lensFor     = 5 * time.Second
	// lensWriters is the number of concurrent writers. Each writes to a separate object.
	lensWriters = 8
	// lensRecording limits the recording of the flood. A flood of 20,000 writes needs more.
	lensRecording = 8 << 20
)

// lensed holds the measurements with and without the lens, from the same run.
type lensed struct {
	get, update [2]time.Duration // medians, directly and through the lens
	// events is the number of events that arrived both ways. added is the median of how much later they arrived
	// through the lens.
	events int
	rate   float64
	added  time.Duration
	// cpu is the CPU time of this process per write, client included, directly and through the lens.
	cpu [2]time.Duration
	// heaps is the heap in use after each quarter of the flood.
	heaps     []uint64
	flood     time.Duration
	recording int64

	fleet  lensedFleet
	builds lensedBuilds
}

// lensSection measures the cost of running an operator behind the lens.
func lensSection(ctx context.Context, e environment) (string, error) {
	began := time.Now()
	var r lensed
	programs := filepath.Join(e.work, "lens-programs")
	say("Lens: building opdock and the fleet's manager")
	if err := goBuild(ctx, filepath.Join(programs, "opdock"), "./cmd/opdock"); err != nil {
		return "", err
	}
	if err := buildManager(ctx, filepath.Join(programs, "manager")); err != nil {
		return "", err
	}
	var err error
	if r.builds, err = measureLensBuilds(ctx, e, programs); err != nil {
		return "", err
	}
	if r.fleet, err = measureLensFleet(ctx, e, programs); err != nil {
		return "", err
	}
	if err := r.measureProxy(ctx, e); err != nil {
		return "", err
	}
	return r.page(e, time.Since(began)), nil
}

// measureProxy measures single requests, events and a flood. The lens and its clients run in this process.
func (r *lensed) measureProxy(ctx context.Context, e environment) error {
	return withCluster(ctx, cluster.Options{Name: "lens", Binary: e.binary}, func(c *cluster.Cluster, _ int) error {
		proxy, err := lens.Start(ctx, lens.Options{Upstream: c.Config()})
		if err != nil {
			return err
		}
		defer proxy.Close()
		direct, err := configMapsOf(c.Config())
		if err != nil {
			return err
		}
		through, err := configMapsOf(proxy.Config())
		if err != nil {
			return err
		}
		for i := range lensWriters {
			if _, err := direct.Create(ctx, configMap(i, 0), metav1.CreateOptions{}); err != nil {
				return fmt.Errorf("creating a ConfigMap: %w", err)
			}
		}
		sides := [2]configMaps{direct, through}
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
}

type configMaps interface {
	Create(context.Context, *corev1.ConfigMap, metav1.CreateOptions) (*corev1.ConfigMap, error)
	Update(context.Context, *corev1.ConfigMap, metav1.UpdateOptions) (*corev1.ConfigMap, error)
	Get(context.Context, string, metav1.GetOptions) (*corev1.ConfigMap, error)
	watcher
}

func configMapsOf(config *rest.Config) (configMaps, error) {
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

// measureRequests sends the same requests directly and through the lens, in turns.
func (r *lensed) measureRequests(ctx context.Context, sides [2]configMaps) error {
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

// write lets the writers make count updates in total, at up to rate updates per second. A rate of 0 is unlimited.
func write(ctx context.Context, side configMaps, count, rate int) error {
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

// measureFlood writes directly first, and then four times as much through a lens that records.
func (r *lensed) measureFlood(ctx context.Context, e environment, proxy *lens.Lens, sides [2]configMaps) error {
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

// cpuHere returns the CPU time of this process.
func cpuHere() time.Duration {
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
