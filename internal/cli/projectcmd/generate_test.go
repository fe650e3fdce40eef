// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package projectcmd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/opdock/opdock/generate"
	"github.com/opdock/opdock/internal/cli/clitest"
	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/golden"
)

// fakeGenerate tells of two generators and returns what it is given.
func fakeGenerate(result *generate.Result, err error) func(context.Context, generate.Options) (*generate.Result, error) {
	return func(_ context.Context, o generate.Options) (*generate.Result, error) {
		if result != nil && o.Progress != nil {
			for _, step := range result.Steps {
				o.Progress(step)
			}
		}
		return result, err
	}
}

func TestGenerate(t *testing.T) {
	steps := []generate.Step{{Generator: "deepcopy", Files: 1, Duration: 20 * time.Millisecond}, {Generator: "crd", Files: 2, Duration: time.Second}}
	changed := &generate.Result{Dir: "/src", Files: 3, Steps: steps, Changes: []generate.Change{
		{Path: "api/v1/zz_generated.deepcopy.go", Kind: generate.Changed},
		{Path: "config/crd/bases/new.yaml", Kind: generate.Missing},
		{Path: "config/crd/bases/old.yaml", Kind: generate.Leftover},
	}}
	same := &generate.Result{Dir: "/src", Files: 3, Steps: steps, Changes: []generate.Change{}}
	skipped := &generate.Result{Dir: "/src", Files: 3, Skipped: true, Steps: []generate.Step{}, Changes: []generate.Change{}}
	doubtful := &generate.Result{Dir: "/src", Files: 3, Skipped: true, Warnings: []generate.Problem{
		{File: "api/v1/types.go", Line: 7, Generator: "controller-gen", Message: "unknown marker +kubebuilder:rbca; did you mean +kubebuilder:rbac?"},
	}}
	broken := &generate.Error{Problems: []generate.Problem{
		{File: "api/v1/types.go", Line: 3, Column: 7, Message: "undefined: Thing"},
		{File: "api/v1/types.go", Line: 9, Column: 1, Generator: "client-gen", Message: "unknown tag detected: genclient:x"},
	}}
	for name, test := range map[string]struct {
		args     []string
		result   *generate.Result
		err      error
		terminal bool
		code     int
	}{
		"changed":          {result: changed},
		"changed-terminal": {result: changed, terminal: true},
		"changed-quiet":    {args: []string{"-q"}, result: changed},
		"changed-json":     {args: []string{"-o", "json"}, result: changed},
		"same":             {result: same},
		"same-terminal":    {result: same, terminal: true},
		"same-check":       {args: []string{"--check"}, result: same},
		"skipped":          {result: skipped},
		"skipped-check":    {args: []string{"--check"}, result: skipped},
		"skipped-json":     {args: []string{"-o", "json"}, result: skipped},
		"warning":          {result: doubtful},
		"warning-quiet":    {args: []string{"-q"}, result: doubtful},
		"stale":            {args: []string{"--check"}, result: changed, code: cmdutil.ExitError},
		"stale-quiet":      {args: []string{"--check", "-q"}, result: changed, code: cmdutil.ExitError},
		"stale-json":       {args: []string{"--check", "-o", "json"}, result: changed, code: cmdutil.ExitError},
		"problems":         {err: broken, code: cmdutil.ExitError},
		"problem":          {err: &generate.Error{Problems: broken.Problems[:1]}, code: cmdutil.ExitError},
		"modules":          {err: &generate.Error{Problems: []generate.Problem{{File: "api/v1/types.go", Line: 3, Column: 2, Message: "missing go.sum entry for module providing package a"}}}, code: cmdutil.ExitError},
		"problems-json":    {args: []string{"-o", "json"}, err: broken, code: cmdutil.ExitError},
		"interrupted":      {err: context.Canceled, code: cmdutil.ExitError},
		"no-module":        {err: &generate.NoModuleError{Dir: "/src"}, code: cmdutil.ExitUsage},
		"nothing":          {err: fmt.Errorf("%w: no package has markers", generate.ErrNothing), code: cmdutil.ExitError},
		"fails":            {err: errors.New("the disk is full"), code: cmdutil.ExitError},
	} {
		t.Run(name, func(t *testing.T) {
			s := newConsole(nil)
			s.Generate = fakeGenerate(test.result, test.err)
			if test.terminal {
				s.ErrWidth = 80
			}
			code, screen := s.Screen(t.Context(), append([]string{"generate"}, test.args...)...)
			clitest.ExpectCode(t, code, test.code)
			golden.Compare(t, "generate/"+name, screen)
		})
	}
}

func TestGenerateOptions(t *testing.T) {
	var got generate.Options
	s := newConsole(nil)
	s.Generate = func(_ context.Context, o generate.Options) (*generate.Result, error) {
		got = o
		return &generate.Result{}, nil
	}
	code, _ := s.Screen(t.Context(), "generate", "./api/...", "./lib", "--dir", "/src", "--config", "c.yaml", "--check", "--force",
		"--only", "crd,rbac", "--only", "client", "--header-file", "h", "--crd-dir", "1", "--rbac-dir", "2", "--webhook-dir", "3",
		"--client-dir", "4", "--openapi-dir", "5")
	clitest.ExpectCode(t, code, cmdutil.ExitOK)
	clitest.ExpectSame(t, "paths", got.Paths, []string{"./api/...", "./lib"})
	clitest.ExpectSame(t, "only", got.Only, []string{"crd", "rbac", "client"})
	clitest.ExpectSame(t, "words", []string{got.Dir, got.ConfigFile, got.HeaderFile, got.CRDDir, got.RBACDir, got.WebhookDir, got.ClientDir, got.OpenAPIDir},
		[]string{"/src", "c.yaml", "h", "1", "2", "3", "4", "5"})
	if !got.Check || !got.Force {
		t.Errorf("got %+v", got)
	}
}

func TestGenerateUnknownGenerator(t *testing.T) {
	s := newConsole(nil)
	s.Generate = func(context.Context, generate.Options) (*generate.Result, error) {
		t.Error("it generates")
		return &generate.Result{}, nil
	}
	code, screen := s.Screen(t.Context(), "generate", "--only", "crd,foo")
	clitest.ExpectCode(t, code, cmdutil.ExitUsage)
	if !strings.Contains(screen, "--only foo is not known: use deepcopy, crd") {
		t.Errorf("it says:\n%s", screen)
	}
}
