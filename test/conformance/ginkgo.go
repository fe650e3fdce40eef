// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/opdock/opdock/cluster"
)

const (
	// The state of a spec. leftOut is ours, the others are Ginkgo's.
	passed  = "passed"
	leftOut = "left out"
	// specPattern is the pattern of the specs to consider: those of a group that belong to Conformance.
	specPattern = `\[sig-(%s)\].*\[Conformance\]`
	// runTimeout is the maximum duration of a run.
	runTimeout = 3 * time.Hour
	// grace is how long Ginkgo may clean up after a signal.
	grace = time.Minute
)

// spec is one of upstream's specs and its result.
type spec struct {
	Name    string  `json:"name"`
	State   string  `json:"state"`
	Seconds float64 `json:"seconds,omitempty"`
	Failure string  `json:"failure,omitempty"`
}

// group returns the special interest group of a spec.
func (s spec) group() string {
	_, rest, _ := strings.Cut(s.Name, "[sig-")
	group, _, _ := strings.Cut(rest, "]")
	return group
}

// report is the part that this command needs of the file that Ginkgo writes with --json-report.
type report struct {
	SpecReports []struct {
		ContainerHierarchyTexts []string
		LeafNodeType            string
		LeafNodeText            string
		State                   string
		RunTime                 time.Duration
		Failure                 struct{ Message string }
	}
	SpecialSuiteFailureReasons []string
}

// allSpecs returns the Conformance specs of our groups.
func (o *options) allSpecs(ctx context.Context) ([]spec, error) {
	path := filepath.Join(o.output, "specs.json")
	// A dry run lists the specs without a cluster. A kubeconfig must be named, but need not exist.
	listing := exec.CommandContext(ctx, o.e2e, "--ginkgo.dry-run", "--ginkgo.silence-skips", "--ginkgo.succinct", "--ginkgo.no-color",
		"--ginkgo.focus="+focusOfGroups(), "--ginkgo.json-report="+path, "--kubeconfig="+os.DevNull, "--provider=skeleton")
	if output, err := listing.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("listing the specs of %s: %w\n%s", o.e2e, err, output)
	}
	specs, err := readReport(path)
	if err != nil {
		return nil, err
	}
	if len(specs) == 0 {
		return nil, fmt.Errorf("%s has no Conformance specs of these groups: %s", o.e2e, strings.Join(groups, ", "))
	}
	return specs, nil
}

func focusOfGroups() string { return fmt.Sprintf(specPattern, strings.Join(groups, "|")) }

// exactly returns a pattern that matches these specs only.
func exactly(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = regexp.QuoteMeta(name)
	}
	return "(" + strings.Join(quoted, "|") + ")$"
}

// ginkgoRun runs specs. Failed specs are not an error.
func (o *options) ginkgoRun(ctx context.Context, c *cluster.Cluster, kubeconfig string, wanted []string) ([]spec, error) {
	ctx, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()
	log, err := os.Create(o.path("log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	assets, err := cluster.Assets(o.binary)
	if err != nil {
		return nil, err
	}
	reported := o.path("json")
	if err := os.Remove(reported); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	args := []string{"--procs=" + strconv.Itoa(o.procs), "--timeout=" + runTimeout.String(), "--no-color", "--silence-skips", "--poll-progress-after=5m",
		"--focus=" + exactly(wanted), "--json-report=" + filepath.Base(reported), "--output-dir=" + absolute(filepath.Dir(reported))}
	args = append(args, absolute(o.e2e), "--",
		"--kubeconfig="+kubeconfig, "--provider=skeleton", "--kubectl-path="+filepath.Join(assets, "kubectl"),
		// There is no kubelet, and no part of the control plane runs in pods.
		"--minStartupPods=0", "--dump-logs-on-failure=false", "--disable-log-dump=true")
	running := exec.CommandContext(ctx, absolute(o.ginkgo), args...)
	running.Dir = here + "/upstream" // Ginkgo checks that its version matches the module it runs in
	running.Stdout, running.Stderr = log, log
	running.Cancel = func() error { return running.Process.Signal(syscall.SIGTERM) }
	running.WaitDelay = grace
	running.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	failure := running.Run()
	if running.Process != nil {
		// The processes of an interrupted run wait for their specs, which can take minutes.
		_ = syscall.Kill(-running.Process.Pid, syscall.SIGKILL)
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("running the specs: %w", context.Cause(ctx))
	}
	select {
	case <-c.Done():
		return nil, fmt.Errorf("the control plane ended while the specs ran: %w", c.Err())
	default:
	}
	ran, err := readReport(reported)
	if err != nil {
		return nil, errors.Join(failure, fmt.Errorf("see %s: %w", log.Name(), err))
	}
	return ran, nil
}

func absolute(path string) string {
	if full, err := filepath.Abs(path); err == nil {
		return full
	}
	return path
}

// readReport returns the specs that Ginkgo ran or, after a dry run, would run.
func readReport(path string) ([]spec, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parseReport(data)
}

func parseReport(data []byte) (ran []spec, err error) {
	var reports []report
	if err := json.Unmarshal(data, &reports); err != nil {
		return nil, fmt.Errorf("reading the report of Ginkgo: %w", err)
	}
	for _, r := range reports {
		for _, s := range r.SpecReports {
			switch {
			case s.LeafNodeType != "It":
				if s.State == "failed" || s.State == "panicked" {
					return nil, fmt.Errorf("%s failed: %s", s.LeafNodeType, s.Failure.Message)
				}
			case s.State == "skipped" && s.RunTime == 0 || s.State == "pending":
				// Not selected. A spec that skips itself has a run time, and counts as not passed.
			default:
				name := strings.Join(append(slices.Clone(s.ContainerHierarchyTexts), s.LeafNodeText), " ")
				ran = append(ran, spec{Name: name, State: s.State, Seconds: s.RunTime.Round(10 * time.Millisecond).Seconds(), Failure: s.Failure.Message})
			}
		}
	}
	slices.SortFunc(ran, func(a, b spec) int { return strings.Compare(a.Name, b.Name) })
	return ran, nil
}

// sameSpecs checks that Ginkgo ran exactly the chosen specs.
func sameSpecs(wanted []string, ran []spec) error {
	var failures []error
	have := map[string]bool{}
	for _, s := range ran {
		have[s.Name] = true
		if !slices.Contains(wanted, s.Name) {
			failures = append(failures, fmt.Errorf("not chosen, but ran: %s", s.Name))
		}
	}
	for _, name := range wanted {
		if !have[name] {
			failures = append(failures, fmt.Errorf("chosen, but did not run: %s", name))
		}
	}
	return errors.Join(failures...)
}

// sameVersion returns the Kubernetes version. It fails if server and specs have different versions.
func sameVersion(config *rest.Config, e2e string) (string, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return "", err
	}
	server, err := client.ServerVersion()
	if err != nil {
		return "", err
	}
	info, err := buildinfo.ReadFile(e2e)
	if err != nil {
		return "", fmt.Errorf("reading the version of %s: %w", e2e, err)
	}
	for _, module := range append(info.Deps, &info.Main) {
		if module.Path == "k8s.io/kubernetes" {
			if !strings.HasPrefix(server.GitVersion, module.Version) {
				return "", fmt.Errorf("the control plane is Kubernetes %s, but the specs are from %s; change %s/upstream/go.mod", server.GitVersion, module.Version, here)
			}
			return module.Version, nil
		}
	}
	return "", fmt.Errorf("%s does not contain k8s.io/kubernetes", e2e)
}
