// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Command mutants checks which defects of the fleet opdock prove finds. It applies one defect at a time to a copy of
// this repository, and runs a campaign on each. Arguments are names of mutants or their prefixes. Without arguments,
// it runs all of them.
//
// It keeps the results in results.json, and writes docs/mutants.md from them.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/opdock/opdock/prove"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctrl.SetLogger(logr.Discard())
	budget := flag.Duration("budget", 5*time.Minute, "how long a campaign may start new runs")
	parallel := flag.Int("parallel", prove.DefaultParallel, "number of runs at the same time")
	missing := flag.Bool("missing", false, "only mutants without a result")
	flag.Parse()
	if err := all(ctx, os.Stdout, flag.Args(), prove.Options{Budget: *budget, Parallel: *parallel}, *missing); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		return 1
	}
	return 0
}

const (
	patches     = "test/mutants/patches"
	resultsFile = "test/mutants/results.json"
	pageFile    = "docs/mutants.md"
	scenarios   = "test/prove/scenarios"
)

func all(ctx context.Context, out io.Writer, wanted []string, o prove.Options, onlyMissing bool) error {
	known, err := mutants(patches)
	if err != nil {
		return err
	}
	results, err := read(resultsFile)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	o.Dir, o.StateDir, o.FailFast = filepath.Join(dir, "opdock"), filepath.Join(dir, "state"), true
	if err := copyTree(ctx, o.Dir); err != nil {
		return err
	}
	for i := range known {
		m := &known[i]
		_, has := results[m.Name]
		if len(wanted) > 0 && !slices.ContainsFunc(wanted, func(one string) bool { return strings.HasPrefix(m.Name, one) }) || has && onlyMissing {
			continue
		}
		fmt.Fprintf(out, "%s: %s\n", m.Name, m.Broken)
		one, err := try(ctx, m, o)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
		fmt.Fprintf(out, "  %s %s after %s, %d runs in %s: %s%s\n", one.Family, one.Verdict, seconds(one.After), one.Runs, seconds(one.Took), one.Title, one.Failed)
		// Write after each mutant, because the rest takes long. Another process may run other mutants, so read the
		// file again.
		if results, err = read(resultsFile); err != nil {
			return err
		}
		results[m.Name] = *one
		if err := write(known, results); err != nil {
			return err
		}
	}
	return write(known, results)
}

// try runs a campaign on a mutant.
func try(ctx context.Context, m *mutant, o prove.Options) (*result, error) {
	if err := patch(ctx, o.Dir, m.path); err != nil {
		return nil, err
	}
	began := time.Now()
	o.Scenario = filepath.Join(o.Dir, scenarios, m.Kind+".yaml")
	o.Families = m.Families
	campaign, err := prove.Run(ctx, o)
	if back := patch(context.WithoutCancel(ctx), o.Dir, m.path, "--reverse"); back != nil {
		return nil, back
	}
	if err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		return &result{Failed: first, Took: time.Since(began)}, nil
	}
	one := &result{Took: campaign.Report.Took}
	for _, family := range campaign.Report.Families {
		one.Runs += family.Ran
	}
	for i := range campaign.Report.Findings {
		f := &campaign.Report.Findings[i]
		if !f.Flaky && (one.Verdict == "" || f.After < one.After) {
			one.Family, one.Verdict, one.Title, one.After = f.Family, f.Verdict, f.Title, f.After
		}
	}
	return one, nil
}

func patch(ctx context.Context, dir, file string, options ...string) error {
	return command(ctx, dir, "git", append(append([]string{"apply"}, options...), file)...)
}

// copyTree copies the tracked and the untracked, but not the ignored files of the repository.
func copyTree(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	list := "git ls-files -z --cached --others --exclude-standard | xargs -0 sh -c 'for f; do [ ! -e \"$f\" ] || echo \"$f\"; done' sh | tar -cf - -T - | tar -xf - -C \"$0\""
	return command(ctx, ".", "sh", "-c", list, dir)
}

func command(ctx context.Context, dir, name string, arguments ...string) error {
	cmd := exec.CommandContext(ctx, name, arguments...)
	cmd.Dir = dir
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(arguments, " "), err, output)
	}
	return nil
}

func read(file string) (map[string]result, error) {
	results := map[string]result{}
	content, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return results, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(content, &results); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return results, nil
}

// write drops the results of mutants that no longer exist, and writes the results and the page.
func write(known []mutant, results map[string]result) error {
	for name := range results {
		if !slices.ContainsFunc(known, func(m mutant) bool { return m.Name == name }) {
			delete(results, name)
		}
	}
	encoded, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(resultsFile, append(encoded, '\n'), 0o600); err != nil {
		return err
	}
	return os.WriteFile(pageFile, []byte(page(known, results)), 0o600)
}
