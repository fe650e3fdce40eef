// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/freeport"
	"github.com/opdock/opdock/internal/manager/command"
)

// fleet is a cluster and the manager that runs against it in a separate process.
type fleet struct {
	client.WithWatch

	program, kubeconfig string
	namespace           string // where its objects are created
	log                 *os.File
	arguments           []string // additional arguments
	through             []string // a command that runs the manager and sets its KUBECONFIG; empty: none
	foreign             bool     // not Opdock's manager: it has fewer flags
	address             string   // where it serves metrics
	probes              string   // where it serves probes
	process             *exec.Cmd
	// peak is the peak memory of the last process in bytes, read before the process was stopped. It is 0 where the
	// system does not report it.
	peak uint64
}

func withFleet(ctx context.Context, e environment, program, name string, use func(*fleet) error) error {
	return withCluster(ctx, cluster.Options{Name: name, Binary: e.binary}, func(c *cluster.Cluster, _ int) error {
		fleetClient, err := installFleet(ctx, c)
		if err != nil {
			return err
		}
		f := &fleet{WithWatch: fleetClient, program: program, kubeconfig: c.Kubeconfig(), namespace: metav1.NamespaceDefault}
		return f.while(ctx, e, name, func() error { return use(f) })
	})
}

// while runs the manager while use runs, and returns when the manager has ended.
func (f *fleet) while(ctx context.Context, e environment, name string, use func() error) (err error) {
	if f.log, err = os.Create(filepath.Join(e.work, name+".log")); err != nil {
		return err
	}
	defer f.log.Close()
	if err := f.startReady(ctx); err != nil {
		return errors.Join(err, f.stop())
	}
	return errors.Join(use(), f.stop())
}

// start starts the manager and returns when it serves metrics.
func (f *fleet) start(ctx context.Context) (err error) {
	if f.address, err = freeport.Address(); err != nil {
		return err
	}
	if f.probes, err = freeport.Address(); err != nil {
		return err
	}
	command := slices.Concat(f.through, []string{f.program, "--metrics-bind-address", f.address, "--health-probe-bind-address", f.probes}, f.arguments)
	if len(f.through) == 0 {
		command = append(command, "--kubeconfig", f.kubeconfig)
	}
	if !f.foreign {
		command = append(command, "--metrics-secure=false")
	}
	f.process = exec.CommandContext(ctx, command[0], command[1:]...) //nolint:gosec // our own programs
	f.process.Stdout, f.process.Stderr = f.log, f.log
	if err := f.process.Start(); err != nil {
		return err
	}
	return eventually(ctx, "the manager does not serve metrics", func(ctx context.Context) error {
		_, err := f.metrics(ctx)
		return err
	})
}

// startReady starts the manager and returns when its caches are synced, so its start-up is not measured.
func (f *fleet) startReady(ctx context.Context) error {
	if err := f.start(ctx); err != nil {
		return err
	}
	return eventually(ctx, "the manager is not ready", func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+f.probes+"/readyz", nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return errors.New(response.Status)
		}
		return nil
	})
}

// eventually calls try until it succeeds, for up to a minute.
func eventually(ctx context.Context, failure string, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var last error // without those that only say that it took too long
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", failure, cmp.Or(last, err))
		}
	}
}

func (f *fleet) stop() error {
	if f.process == nil {
		return nil
	}
	process := f.process
	f.process = nil
	f.peak = peakOf(process.Process.Pid)
	if err := process.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	err := process.Wait()
	if err != nil {
		return fmt.Errorf("stopping the manager: %w", err)
	}
	return nil
}

// peakOf returns the peak memory of a running process. The rusage of an ended process does not help: on Linux it is
// at least as large as the memory of the parent when it started the process.
func peakOf(pid int) uint64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	var kilobytes uint64
	if _, err := fmt.Sscanf(rest, "%d kB", &kilobytes); err != nil {
		return 0
	}
	return kilobytes << 10
}

func (f *fleet) pid() int { return f.process.Process.Pid }

type counts struct {
	writes, reconciles float64
	cpu                time.Duration
}

func (f *fleet) scrape(ctx context.Context) (map[string]*dto.MetricFamily, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+f.address+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(response.Body)
}

func (f *fleet) metrics(ctx context.Context) (counts, error) {
	families, err := f.scrape(ctx)
	if err != nil {
		return counts{}, err
	}
	return counts{
		writes:     sum(families["rest_client_requests_total"], "method", http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete),
		reconciles: sum(families["opdock_reconciles_total"], "kind", "AppService"),
		cpu:        cpuOf(families),
	}, nil
}

// metricsAtRest waits until the manager sends no more writes, such as events, which wait while it has much else to write. It
// also returns how long ago the last one was sent.
func (f *fleet) metricsAtRest(ctx context.Context) (last counts, ago time.Duration, err error) {
	since := time.Now()
	for time.Since(since) < restInterval {
		now, err := f.metrics(ctx)
		if err != nil {
			return last, 0, err
		}
		if now.writes != last.writes {
			last, since = now, time.Now()
		}
		last.cpu = now.cpu
		if err := pause(ctx, restInterval/4); err != nil {
			return last, 0, err
		}
	}
	return last, time.Since(since), nil
}

// sum adds up the counters whose label has one of the values.
func sum(family *dto.MetricFamily, label string, values ...string) (total float64) {
	for _, metric := range family.GetMetric() {
		for _, pair := range metric.GetLabel() {
			if pair.GetName() == label && slices.Contains(values, pair.GetValue()) {
				total += metric.GetCounter().GetValue()
			}
		}
	}
	return total
}

// buildManager builds the fleet's manager with the flags of its image.
func buildManager(ctx context.Context, output string) error {
	return goBuild(ctx, output, "./cmd/manager", "-tags", command.BuildTags, "-ldflags=-s -w")
}

func goBuild(ctx context.Context, output, pkg string, flags ...string) error {
	build := exec.CommandContext(ctx, "go", slices.Concat([]string{"build", "-o", output}, flags, []string{pkg})...) //nolint:gosec // the arguments are constants
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", pkg, err, out)
	}
	return nil
}
