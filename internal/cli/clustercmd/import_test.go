// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package clustercmd

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/cli/clitest"
	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/golden"
	"github.com/opdock/opdock/internal/target"
	"github.com/opdock/opdock/internal/testenv"
)

func TestImport(t *testing.T) {
	dump := filepath.Join(t.TempDir(), "dump.yaml")
	content := `{apiVersion: v1, kind: Secret, metadata: {namespace: shop, name: password}, data: {key: c2VjcmV0}}
---
{apiVersion: v1, kind: Event, metadata: {namespace: shop, name: event}}
---
{apiVersion: v1, kind: Pod, metadata: {namespace: shop, name: web}, spec: {nodeName: worker}}
`
	if err := os.WriteFile(dump, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "must-gather")
	testenv.WriteFiles(t, folder, map[string]string{"shop.yaml": content, "pods/cut.yaml": content[:len(content)-10], "empty/results.json": "{}"})
	for name, test := range map[string]struct {
		args []string
		code int
	}{
		"import-folder":    {args: []string{"-f", folder, "--name", "new", "--quiet"}},
		"import-cut":       {args: []string{"-f", filepath.Join(folder, "pods/cut.yaml"), "--name", "new"}, code: cmdutil.ExitError},
		"import-empty":     {args: []string{"-f", filepath.Join(folder, "empty"), "--name", "new"}, code: cmdutil.ExitError},
		"import-binary":    {args: []string{"-f", os.Args[0], "--name", "new"}, code: cmdutil.ExitError},
		"import":           {args: []string{"-f", dump, "--name", "new"}},
		"import-quiet":     {args: []string{"-f", dump, "--name", "new", "--quiet"}},
		"import-nothing":   {args: []string{"-f", dump, "--name", "new", "--kinds", "configmaps"}, code: cmdutil.ExitError},
		"import-namespace": {args: []string{"-f", dump, "--name", "new", "-n", "other"}, code: cmdutil.ExitError},
		"import-kinds":     {args: []string{"-f", dump, "--name", "new", "--kinds", "pods,typo"}, code: cmdutil.ExitError},
		"import-exists":    {args: []string{"-f", dump, "--name", "old"}, code: cmdutil.ExitError},
		"import-no-source": {args: []string{"--name", "new"}, code: cmdutil.ExitUsage},
		"import-both":      {args: []string{"-f", dump, "--context", "prod"}, code: cmdutil.ExitUsage},
	} {
		t.Run(name, func(t *testing.T) {
			dock := &clitest.FakeDock{Binary: "/bin/opdock-controlplane", Clusters: clitest.Clusters(clitest.Stopped)}
			var written string
			dock.Start = func(ctx context.Context, o cluster.Options) (target.Running, error) {
				data, err := os.ReadFile(o.From)
				written = string(data)
				if err != nil {
					t.Error(err)
				}
				return clitest.StartsWell(dock)(ctx, o)
			}
			code, screen := newConsole(dock).Screen(t.Context(), append([]string{"import"}, test.args...)...)
			clitest.ExpectCode(t, code, test.code)
			golden.Compare(t, "import/"+name, strings.NewReplacer(dump, "dump.yaml", folder, "must-gather", os.Args[0], "program").Replace(screen))
			if test.code != cmdutil.ExitOK {
				return
			}
			if !strings.HasPrefix(written, "opdock-objects/1\n{\"objects\":4,\"nodes\":1}\n") || strings.Contains(written, "c2VjcmV0") {
				t.Errorf("the cluster starts with\n%s", written)
			}
			if _, err := os.Stat(dock.Started[0].From); err == nil {
				t.Error("the file is still there")
			}
		})
	}
}

// TestImportThatDoesNotFinish proposes no command that would start an empty cluster instead.
func TestImportThatDoesNotFinish(t *testing.T) {
	dump := filepath.Join(t.TempDir(), "dump.yaml")
	testenv.WriteFile(t, dump, "{apiVersion: v1, kind: ConfigMap, metadata: {name: one}}")
	interrupted, interrupt := context.WithCancel(t.Context())
	interrupt()
	starting, interruptStart := context.WithCancel(t.Context())
	for name, test := range map[string]struct {
		ctx   context.Context
		args  []string
		start func(context.Context, cluster.Options) (target.Running, error)
	}{
		"import-timeout":  {t.Context(), []string{"--timeout", "1ms"}, clitest.Hangs},
		"import-not-read": {interrupted, nil, clitest.Hangs},
		"import-interrupted": {starting, nil, func(ctx context.Context, o cluster.Options) (target.Running, error) {
			interruptStart()
			return clitest.Hangs(ctx, o)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			dock := &clitest.FakeDock{Binary: "/bin/opdock-controlplane", Start: test.start}
			code, screen := newConsole(dock).Screen(test.ctx, append([]string{"import", "-f", dump, "--name", "new"}, test.args...)...)
			clitest.ExpectCode(t, code, cmdutil.ExitError)
			golden.Compare(t, "import/"+name, strings.ReplaceAll(screen, dump, "dump.yaml"))
		})
	}
}
