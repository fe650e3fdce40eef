// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"context"
	"errors"
	"time"
)

// Options configures Run. The zero value generates everything that the markers in the module of the current folder
// request.
type Options struct {
	// Dir is the module's folder, or one inside of it. Default: the current folder.
	Dir string
	// Paths are folders relative to the module's, with /... for all below. They replace the paths of the
	// configuration.
	Paths []string
	// ConfigFile is the configuration to read. Default: opdock.yaml in the module's folder, if there is one.
	ConfigFile string
	// Only names the generators to run. Default: all that the markers request.
	Only []string
	// HeaderFile and the folders override the configuration.
	HeaderFile string
	CRDDir     string
	RBACDir    string
	WebhookDir string
	ClientDir  string
	OpenAPIDir string

	// Check determines what a run would change, without changing anything.
	Check bool
	// Force does the work even if nothing has changed since the last run.
	Force bool
	// CacheDir is where stamps of earlier runs are kept. Default: opdock/generate in the user's cache folder.
	CacheDir string
	// Progress is called for each generator that has finished. It is called from several goroutines, but never
	// concurrently.
	Progress func(Step)
}

// Step is one generator that has finished.
type Step struct {
	Generator string        `json:"generator"`
	Files     int           `json:"files"`
	Duration  time.Duration `json:"nanoseconds"`
}

// ChangeKind is how a file on disk differs from the generated one.
type ChangeKind string

const (
	// Missing is a file that is generated and does not exist.
	Missing ChangeKind = "missing"
	// Changed is a file whose content differs from the generated content.
	Changed ChangeKind = "changed"
	// Leftover is a file that is no longer generated.
	Leftover ChangeKind = "leftover"
)

// Change is a difference between the files on disk and the generated ones. Paths are relative to the module's
// folder.
type Change struct {
	Path string     `json:"path"`
	Kind ChangeKind `json:"kind"`
}

// Result is what a run did or, with Options.Check, would do.
type Result struct {
	// Dir is the module's folder.
	Dir string `json:"dir"`
	// Skipped means that nothing has changed since the last run.
	Skipped bool `json:"skipped"`
	// Steps are the generators that ran, in the order in which they are listed in Generators.
	Steps []Step `json:"steps"`
	// Changes were written, or are what Check found.
	Changes []Change `json:"changes"`
	// Files is how many files are generated, changed or not.
	Files int `json:"files"`
	// Warnings are about markers that no generator knows. Upstream's generators ignore them silently.
	Warnings []Problem `json:"warnings,omitempty"`
}

// ErrNothing is returned if no marker requests anything.
var ErrNothing = errors.New("nothing to generate")

// Run generates. If anything fails, no file is changed and the error is an *Error where the source is to blame.
func Run(ctx context.Context, o Options) (*Result, error) {
	began := time.Now()
	module, err := findModule(o.Dir)
	if err != nil {
		return nil, err
	}
	config, err := loadConfig(module, o)
	if err != nil {
		return nil, err
	}
	found, err := discover(module, config)
	if err != nil {
		return nil, err
	}
	stamps := newStampStore(o, module)
	question, err := newQuestion(module, config, found, o, began)
	if err != nil {
		return nil, err
	}
	if last := stamps.load(); !o.Force && last.answers(question) {
		return &Result{Dir: module.dir, Skipped: true, Steps: []Step{}, Changes: []Change{}, Files: len(last.Outputs), Warnings: found.warnings()}, nil
	}
	plan, err := newPlan(module, config, found, o)
	if err != nil {
		return nil, err
	}
	outputs, inputs, err := execute(ctx, plan, o.Progress)
	if err != nil {
		return nil, err
	}
	changes, err := compare(plan, outputs.files, found)
	if err != nil {
		return nil, err
	}
	if err := plan.checkClient(ctx, changes); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !o.Check {
		if err := apply(ctx, module, changes); err != nil {
			return nil, err
		}
	}
	if !o.Check || len(changes) == 0 {
		stamps.save(newStamp(question, inputs, outputs.files, plan.ownFolders()))
	}
	return &Result{Dir: module.dir, Steps: outputs.steps, Changes: publicChanges(changes), Files: len(outputs.files), Warnings: found.warnings()}, nil
}
