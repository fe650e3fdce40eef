// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/opdock/opdock/cluster"
)

const (
	forkObjects     = 1000
	snapshotObjects = 5000
	sideBySide      = 10
)

// forkResult is the cost of copies of a cluster.
type forkResult struct {
	restarts, forks []time.Duration
	together        time.Duration // until the last of sideBySide forks is ready
	alone           uint64        // proportional set size of the original alone, in bytes
	each            uint64        // the same for each of sideBySide forks
	save, restore   time.Duration
	file            int64
}

func forksSection(ctx context.Context, e environment) (string, error) {
	began := time.Now()
	r, err := measureForks(ctx, e)
	if err != nil {
		return "", err
	}
	again, fork := median(r.restarts), median(r.forks)
	return sectionPage("forks", "Forks and snapshots", time.Since(began), func(p printer) {
		p("The times run until a cluster with %d ConfigMaps is ready. They are medians of %d rounds, in which restart and fork took turns. The", forkObjects, e.runs)
		p("original keeps running beside a fork. Memory is the proportional set size, which divides shared pages among the")
		p("processes that share them, %s after the last cluster was ready.\n", settle)
		p("| | median | fastest | slowest |")
		p("|---|---:|---:|---:|")
		p("| restart | %s | %s | %s |", ms(again), ms(slices.Min(r.restarts)), ms(slices.Max(r.restarts)))
		p("| fork | %s | %s | %s |", ms(fork), ms(slices.Min(r.forks)), ms(slices.Max(r.forks)))
		p("\n| | |")
		p("|---|---:|")
		p("| %d forks started at once, until the last is ready | %s, %s each |", sideBySide, ms(r.together), ms(r.together/sideBySide))
		p("| memory of the original alone | %d MB |", r.alone/1e6)
		p("| memory of each of %d forks | %d MB |", sideBySide, r.each/1e6)
		p("| snapshot of %d objects | %s, %.1f MB |", snapshotObjects, ms(r.save), float64(r.file)/1e6)
		p("| new cluster from that snapshot, ready | %s |", ms(r.restore))
	}, []goal{
		{fmt.Sprintf("fork of a cluster with %d objects against its restart", forkObjects), "at most 1.20 ×", times(ratio(fork, again)), ratio(fork, again) <= 1.2},
	}), nil
}

func measureForks(ctx context.Context, e environment) (forkResult, error) {
	var r forkResult
	say("Forks: %d objects", forkObjects)
	err := withCluster(ctx, cluster.Options{Name: "original", Binary: e.binary}, func(original *cluster.Cluster, pid int) error {
		if err := fillWith(ctx, original, forkObjects); err != nil {
			return err
		}
		if err := forkAndRestart(ctx, original, e, &r); err != nil {
			return err
		}
		var err error
		if err = pause(ctx, settle); err != nil {
			return err
		}
		if r.alone, err = proportional(pid); err != nil {
			return err
		}
		return manyForks(ctx, original, &r)
	})
	if err != nil {
		return r, err
	}
	say("Snapshots: %d objects", snapshotObjects)
	err = withCluster(ctx, cluster.Options{Name: "large", Binary: e.binary}, func(c *cluster.Cluster, _ int) error {
		if err := fillWith(ctx, c, snapshotObjects); err != nil {
			return err
		}
		path := filepath.Join(e.work, "large.snapshot")
		began := time.Now()
		saved, err := c.Save(ctx, path)
		if err != nil {
			return err
		}
		r.save, r.file = time.Since(began), saved.Bytes
		began = time.Now()
		restored, err := cluster.Start(ctx, cluster.Options{Binary: e.binary, From: path})
		if err != nil {
			return err
		}
		r.restore = time.Since(began)
		return restored.Stop()
	})
	return r, err
}

// forkAndRestart measures restarts and forks in turns. The restarted cluster is itself a fork, so both have the same
// data.
func forkAndRestart(ctx context.Context, original *cluster.Cluster, e environment, r *forkResult) error {
	kept := cluster.Options{Name: "restarted", Binary: e.binary}
	first, err := original.Fork(ctx, kept)
	if err != nil {
		return err
	}
	if err := first.Stop(); err != nil {
		return err
	}
	for round := range e.runs {
		restarted, err := timed(&r.restarts, func() (*cluster.Cluster, error) { return cluster.Start(ctx, kept) })
		if err != nil {
			return err
		}
		if err := restarted.Stop(); err != nil {
			return err
		}
		forked, err := timed(&r.forks, func() (*cluster.Cluster, error) { return original.Fork(ctx, cluster.Options{}) })
		if err != nil {
			return err
		}
		if err := forked.Stop(); err != nil {
			return err
		}
		say("  round %d: restart %s, fork %s", round+1, ms(r.restarts[round]), ms(r.forks[round]))
	}
	return nil
}

func timed(to *[]time.Duration, start func() (*cluster.Cluster, error)) (*cluster.Cluster, error) {
	began := time.Now()
	c, err := start()
	*to = append(*to, time.Since(began))
	return c, err
}

func manyForks(ctx context.Context, original *cluster.Cluster, r *forkResult) (err error) {
	forks := make([]*cluster.Cluster, sideBySide)
	failures := make([]error, sideBySide)
	began := time.Now()
	var running sync.WaitGroup
	for i := range forks {
		running.Go(func() { forks[i], failures[i] = original.Fork(ctx, cluster.Options{Name: fmt.Sprint("fork-", i)}) })
	}
	running.Wait()
	r.together = time.Since(began)
	defer func() {
		for _, fork := range forks {
			if fork != nil {
				err = errors.Join(err, fork.Stop())
			}
		}
	}()
	if err := errors.Join(failures...); err != nil {
		return err
	}
	if err := pause(ctx, settle); err != nil {
		return err
	}
	var sum uint64
	for _, fork := range forks {
		status, err := cluster.Find(fork.Name())
		if err != nil {
			return err
		}
		bytes, err := proportional(status.PID)
		if err != nil {
			return err
		}
		sum += bytes
	}
	r.each = sum / sideBySide
	return nil
}

// fillWith creates ConfigMaps with about 1 kB of data each.
func fillWith(ctx context.Context, c *cluster.Cluster, objects int) error {
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		return err
	}
	numbers := make(chan int)
	failed := make(chan error, 1)
	var running sync.WaitGroup
	for range 8 {
		running.Go(func() {
			for number := range numbers {
				_, err := client.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(ctx, &corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("object-", number)},
					Data:       map[string]string{"data": strings.Repeat(fmt.Sprint(number, " "), 1000/(len(strconv.Itoa(number))+1))},
				}, metav1.CreateOptions{})
				if err != nil {
					select {
					case failed <- err:
					default:
					}
				}
			}
		})
	}
	for number := range objects {
		numbers <- number
	}
	close(numbers)
	running.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// proportional returns the proportional set size of a process. Only Linux reports it.
func proportional(pid int) (uint64, error) {
	file, err := os.Open(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, fmt.Errorf("reading the memory of process %d: %w", pid, err)
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) == 3 && fields[0] == "Pss:" {
			kilobytes, err := strconv.ParseUint(fields[1], 10, 64)
			return kilobytes << 10, err
		}
	}
	return 0, fmt.Errorf("reading the memory of process %d: smaps_rollup has no Pss", pid)
}
