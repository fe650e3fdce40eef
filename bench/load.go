// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/opdock/opdock/cluster"
)

// loadResult holds the measurements of a cluster with many pods.
type loadResult struct {
	ready        time.Duration // from creating the Deployment until all pods are Ready
	readyLimited time.Duration // the same with kube-controller-manager's default client limits
	idle, loaded uint64        // resident bytes
}

// upstreamQPS is the default of kube-controller-manager --kube-api-qps.
const upstreamQPS = 20

// settle is how long a cluster must be idle before its memory is read.
const settle = 20 * time.Second

// loadSection measures a cluster with many pods, and a build without changes.
func loadSection(ctx context.Context, e environment) (string, error) {
	began := time.Now()
	load, err := measureLoad(ctx, e.binary, e.work, e.pods)
	if err != nil {
		return "", err
	}
	rebuild, err := measureRebuild(ctx)
	if err != nil {
		return "", fmt.Errorf("second build: %w", err)
	}
	return sectionPage("load", "Load and memory", time.Since(began), func(p printer) {
		p("One Deployment of %d pods on one simulated node.\n", e.pods)
		p("| | |")
		p("|---|---:|")
		p("| from creation until all pods are Ready | %s |", ms(load.ready))
		p("| the same with the default client limit of kube-controller-manager (%d requests per second) | %s, %.1f × as long |", upstreamQPS, ms(load.readyLimited), ratio(load.readyLimited, load.ready))
		p("| resident memory when idle | %d MB |", load.idle/1e6)
		p("| resident memory with %d pods | %d MB |", e.pods, load.loaded/1e6)
	}, []goal{
		{"`make build` when nothing changed", "under 3 s", ms(rebuild), rebuild < 3*time.Second},
	}), nil
}

func measureLoad(ctx context.Context, binary, work string, pods int) (loadResult, error) {
	var result loadResult
	err := withCluster(ctx, cluster.Options{Name: "load", Binary: binary}, func(c *cluster.Cluster, pid int) (err error) {
		say("Load: %d pods, after %s at rest", pods, settle)
		if result.idle, err = residentAfter(ctx, pid); err != nil {
			return err
		}
		if result.ready, err = timeDeploy(ctx, c, pods); err != nil {
			return err
		}
		say("  ready in %s", result.ready.Round(10*time.Millisecond))
		result.loaded, err = residentAfter(ctx, pid)
		return err
	})
	if err != nil {
		return result, err
	}

	// Only this comparison needs the flag, so it is not part of cluster.Options.
	limited := filepath.Join(work, "limited")
	script := fmt.Sprintf("#!/bin/sh\nexec '%s' \"$@\" --controller-qps %d\n", binary, upstreamQPS)
	if err := os.WriteFile(limited, []byte(script), 0o700); err != nil { //nolint:gosec // it must be executable
		return result, err
	}
	err = withCluster(ctx, cluster.Options{Name: "limited", Binary: limited}, func(c *cluster.Cluster, _ int) (err error) {
		say("Load: the same with %d requests a second per controller", upstreamQPS)
		result.readyLimited, err = timeDeploy(ctx, c, pods)
		say("  ready in %s", result.readyLimited.Round(10*time.Millisecond))
		return err
	})
	return result, err
}

func withCluster(ctx context.Context, o cluster.Options, use func(c *cluster.Cluster, pid int) error) error {
	c, err := cluster.Start(ctx, o)
	if err != nil {
		return err
	}
	status, err := cluster.Find(o.Name)
	if err == nil {
		err = use(c, status.PID)
	}
	return errors.Join(err, c.Stop())
}

func timeDeploy(ctx context.Context, c *cluster.Cluster, pods int) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	began := time.Now()
	err := deploy(ctx, c.Config(), "many", int32(pods)) //nolint:gosec // a small number from a flag
	return time.Since(began), err
}

func residentAfter(ctx context.Context, pid int) (uint64, error) {
	if err := pause(ctx, settle); err != nil {
		return 0, err
	}
	return residentNow(ctx, pid)
}

func residentNow(ctx context.Context, pid int) (uint64, error) {
	// ps reports this on every system.
	out, err := exec.CommandContext(ctx, "ps", "-o", "rss=", "-p", strconv.Itoa(pid)).Output() //nolint:gosec // a number
	if err != nil {
		return 0, fmt.Errorf("reading the memory of process %d: %w", pid, err)
	}
	kilobytes, err := strconv.ParseUint(strings.TrimSpace(string(out)), 10, 64)
	return kilobytes << 10, err
}

// pause gives a cluster time to finish its work after a change, such as publishing new kinds.
func pause(ctx context.Context, duration time.Duration) error {
	select {
	case <-time.After(duration):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// measureRebuild times a build without changes.
func measureRebuild(ctx context.Context) (time.Duration, error) {
	say("Building again with nothing changed")
	var took time.Duration
	for range 2 { // the first build leaves nothing to do for the second
		began := time.Now()
		if out, err := exec.CommandContext(ctx, "make", "build").CombinedOutput(); err != nil {
			return 0, fmt.Errorf("make build: %w\n%s", err, out)
		}
		took = time.Since(began)
	}
	return took, nil
}
