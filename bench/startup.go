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
	"slices"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/opdock/opdock/cluster"
)

// contender is one way to get an API server or a cluster.
type contender struct {
	key, name, until string
	// start returns the time it took. It cleans up after itself.
	start func(ctx context.Context, run int) (time.Duration, error)
}

// timing holds the times of a contender.
type timing struct {
	contender
	times []time.Duration
}

func (t timing) median() time.Duration { return median(t.times) }

func median(times []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	return sorted[len(sorted)/2]
}

const (
	coldStart    = "cold"
	restart      = "restart"
	envtestStart = "envtest"
)

// startupSection measures how long clusters take to start.
func startupSection(ctx context.Context, e environment) (string, error) {
	say("Building the upstream programs to compare with, from the same source")
	programs, err := buildUpstream(ctx)
	if err != nil {
		return "", err
	}
	began := time.Now()
	timings, err := measureStartup(ctx, e.binary, programs, e.work, e.runs)
	if err != nil {
		return "", err
	}
	median := map[string]time.Duration{}
	for _, t := range timings {
		median[t.key] = t.median()
	}
	cold, again, envtest := median[coldStart], median[restart], median[envtestStart]
	return sectionPage("startup", "Start-up", time.Since(began), func(p printer) {
		p("The clock starts before the first process. The contenders took turns in %d rounds.\n", e.runs)
		p("| contender | until | median | fastest | slowest | against envtest |")
		p("|---|---|---:|---:|---:|---:|")
		for _, t := range timings {
			p("| %s | %s | %s | %s | %s | %s |", t.name, t.until, ms(t.median()), ms(slices.Min(t.times)), ms(slices.Max(t.times)), times(ratio(t.median(), envtest)))
		}
		p("\nA restart does everything that a new start does, except writing the initial objects. Writing them is a small")
		p("part of such a short start, so a restart takes more than half as long. Against envtest, it takes %s.", times(ratio(again, envtest)))
	}, []goal{
		{"a new cluster until a Deployment is Available, against envtest's API server alone", "at most 0.40 ×", times(ratio(cold, envtest)), ratio(cold, envtest) <= 0.4},
		{"a new cluster until a Deployment is Available, on an idle machine with two cores", "under 1 s", ms(cold), cold < time.Second},
		{"a restart on existing state, against a new cluster", "at most 0.50 ×", times(ratio(again, cold)), ratio(again, cold) <= 0.5},
	}), nil
}

func measureStartup(ctx context.Context, binary string, programs upstream, work string, runs int) ([]timing, error) {
	assets, err := cluster.Assets(binary)
	if err != nil {
		return nil, err
	}
	kept, err := keepCluster(ctx, binary)
	if err != nil {
		return nil, err
	}
	timings := []timing{
		{contender: contender{coldStart, "opdock, new cluster", "3-replica Deployment Available", func(ctx context.Context, _ int) (time.Duration, error) {
			return startToAvailable(ctx, cluster.Options{Binary: binary}, "web")
		}}},
		{contender: contender{restart, "opdock, restart on existing state", "state restored, Deployment Available", func(ctx context.Context, _ int) (time.Duration, error) {
			return restartToAvailable(ctx, kept)
		}}},
		{contender: contender{envtestStart, "envtest, upstream etcd and kube-apiserver", "API server only", func(context.Context, int) (time.Duration, error) {
			return startEnvtest(programs.dir)
		}}},
		{contender: contender{"envtest-assets", "envtest, `opdock assets`", "API server only", func(context.Context, int) (time.Duration, error) {
			return startEnvtest(assets)
		}}},
		{contender: contender{"kwokctl", "kwokctl, binary runtime, upstream programs", "3-replica Deployment Available", func(ctx context.Context, run int) (time.Duration, error) {
			return startKwokctl(ctx, programs, filepath.Join(work, fmt.Sprint("kwok-", run)))
		}}},
	}
	for run := range runs {
		say("Start-up, round %d of %d", run+1, runs)
		for i := range timings {
			took, err := timings[i].start(ctx, run)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", timings[i].name, err)
			}
			say("  %-45s %6d ms", timings[i].name, took.Milliseconds())
			timings[i].times = append(timings[i].times, took)
		}
	}
	return timings, nil
}

// startToAvailable measures from before the process starts until a new Deployment is Available.
func startToAvailable(ctx context.Context, o cluster.Options, name string) (time.Duration, error) {
	began := time.Now()
	c, err := cluster.Start(ctx, o)
	if err != nil {
		return 0, err
	}
	err = deploy(ctx, c.Config(), name, 3)
	took := time.Since(began)
	return took, errors.Join(err, c.Stop())
}

// keepCluster creates and stops a cluster that contains a Deployment.
func keepCluster(ctx context.Context, binary string) (cluster.Options, error) {
	o := cluster.Options{Name: "kept", Binary: binary}
	_, err := startToAvailable(ctx, o, "web")
	return o, err
}

// restartToAvailable measures from before the process starts until the cluster is ready and its Deployment is
// Available again.
func restartToAvailable(ctx context.Context, o cluster.Options) (time.Duration, error) {
	began := time.Now()
	c, err := cluster.Start(ctx, o)
	if err != nil {
		return 0, err
	}
	err = waitAvailable(ctx, c.Config(), "web", 3)
	took := time.Since(began)
	return took, errors.Join(err, c.Stop())
}

func startEnvtest(assets string) (time.Duration, error) {
	environment := &envtest.Environment{BinaryAssetsDirectory: assets}
	began := time.Now()
	if _, err := environment.Start(); err != nil {
		return 0, err
	}
	took := time.Since(began)
	return took, environment.Stop()
}

func startKwokctl(ctx context.Context, programs upstream, dir string) (time.Duration, error) {
	kubeconfig := filepath.Join(dir, "kubeconfig")
	kwokctl := func(args ...string) error {
		command := exec.CommandContext(ctx, programs.kwokctl, append(args, "--name=bench", "--kubeconfig="+kubeconfig)...)
		command.Env = append(os.Environ(), "KWOK_WORKDIR="+dir)
		if out, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("kwokctl %s: %w\n%s", args[0], err, out)
		}
		return nil
	}
	began := time.Now()
	err := kwokctl("create", "cluster", "--runtime=binary", "--wait=60s",
		"--etcd-binary="+programs.path("etcd"),
		"--kube-apiserver-binary="+programs.path("kube-apiserver"),
		"--kube-controller-manager-binary="+programs.path("kube-controller-manager"),
		"--kube-scheduler-binary="+programs.path("kube-scheduler"),
		"--kwok-controller-binary="+programs.path("kwok"))
	if err != nil {
		return 0, err
	}
	took, err := func() (time.Duration, error) {
		var config *rest.Config
		if config, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
			return 0, err
		}
		if err := addKwokNode(ctx, config); err != nil {
			return 0, err
		}
		if err := deploy(ctx, config, "web", 3); err != nil {
			return 0, err
		}
		return time.Since(began), nil
	}()
	if stopErr := kwokctl("delete", "cluster"); err == nil {
		err = stopErr
	}
	return took, err
}
