// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package projectcmd

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/opdock/opdock/generate"
	"github.com/opdock/opdock/internal/cli/clitest"
	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/filewrite"
	"github.com/opdock/opdock/internal/golden"
)

// workshop is a folder in which projects are made, without generating.
type workshop struct {
	t        *testing.T
	dir      string
	generate func(context.Context, generate.Options) (*generate.Result, error)
	answers  string // what the user types; empty: there is no terminal
}

func newWorkshop(t *testing.T) *workshop {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "dry-dock") // it becomes the name of the project
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return &workshop{t: t, dir: dir, generate: fakeGenerate(&generate.Result{
		Changes: []generate.Change{{Path: "api/v1/zz_generated.deepcopy.go", Kind: generate.Missing}},
	}, nil)}
}

// run runs a verb and returns the exit code and what is on the screen, with other words for the folder.
func (w *workshop) run(ctx context.Context, args ...string) (code int, screen string) {
	w.t.Helper()
	s := newConsole(nil)
	s.Generate = w.generate
	if w.answers != "" {
		s.Ask = cmdutil.Asking(strings.NewReader(w.answers), s.ErrText)
	}
	code, screen = s.Screen(ctx, append(args, "--dir", w.dir)...)
	return code, strings.ReplaceAll(strings.ReplaceAll(screen, w.dir, "DIR"), filepath.Base(w.dir), "FOLDER")
}

// must runs verbs that have to work.
func (w *workshop) must(lines ...string) {
	w.t.Helper()
	for _, line := range lines {
		if code, screen := w.run(w.t.Context(), strings.Fields(line)...); code != cmdutil.ExitOK {
			w.t.Fatalf("%s\n%s", line, screen)
		}
	}
}

func (w *workshop) files() map[string]string {
	w.t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(w.dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(name)
		files[strings.TrimPrefix(name, w.dir+"/")] = string(content)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return files
}

const (
	initYard   = "init --domain example.com --repo example.com/yard --project-name yard --owner Me"
	addFrigate = "create api --group ship --version v1 --kind Frigate"
	addWebhook = "create webhook --group ship --version v1 --kind Frigate --defaulting"
)

func TestScaffoldOutput(t *testing.T) {
	for name, test := range map[string]struct {
		before []string
		line   string
		edit   string // a file that is edited before
		code   int
	}{
		"init":           {line: initYard},
		"init-quiet":     {line: initYard + " -q"},
		"create-api":     {before: []string{initYard}, line: addFrigate},
		"create-json":    {before: []string{initYard}, line: addFrigate + " -o json"},
		"create-webhook": {before: []string{initYard, addFrigate}, line: addWebhook},
		"delete-webhook": {before: []string{initYard, addFrigate, addWebhook}, line: "delete webhook --group ship --version v1 --kind Frigate"},
		"delete-api":     {before: []string{initYard, addFrigate}, line: "delete api --api-version ship.example.com/v1 --kind Frigate"},
		"delete-edited": {
			before: []string{initYard, addFrigate}, line: "delete api --group ship --version v1 --kind Frigate",
			edit: "internal/controller/frigate_controller.go", code: cmdutil.ExitError,
		},
		"delete-keep-edited": {
			before: []string{initYard, addFrigate}, line: "delete api --group ship --version v1 --kind Frigate --keep-edited",
			edit: "internal/controller/frigate_controller.go",
		},

		"bad-not-empty":   {before: []string{initYard}, line: initYard, code: cmdutil.ExitUsage},
		"bad-no-domain":   {line: "init", code: cmdutil.ExitUsage},
		"bad-license":     {line: initYard + " --license gpl9", code: cmdutil.ExitUsage},
		"bad-no-project":  {line: addFrigate, code: cmdutil.ExitUsage},
		"bad-kind":        {before: []string{initYard}, line: "create api --group ship --version v1 --kind tea-pot", code: cmdutil.ExitUsage},
		"bad-exists":      {before: []string{initYard, addFrigate}, line: addFrigate, code: cmdutil.ExitUsage},
		"bad-api-version": {before: []string{initYard}, line: "create api --api-version ship.other.com/v1 --kind Frigate", code: cmdutil.ExitUsage},
		"bad-both-names":  {before: []string{initYard}, line: addFrigate + " --api-version ship.example.com/v1", code: cmdutil.ExitUsage},
		"bad-argument":    {line: addFrigate + " stray", code: cmdutil.ExitUsage},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorkshop(t)
			w.must(test.before...)
			if test.edit != "" {
				if err := os.WriteFile(filepath.Join(w.dir, test.edit), []byte("package controller\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			before := w.files()
			code, screen := w.run(t.Context(), strings.Fields(test.line)...)
			clitest.ExpectCode(t, code, test.code)
			golden.Compare(t, "scaffold/"+name, regexp.MustCompile(` \([0-9.]+m?s\)`).ReplaceAllString(screen, ""))
			if test.code != cmdutil.ExitOK && !maps.Equal(before, w.files()) {
				t.Error("something was written")
			}
		})
	}
}

// A directory whose name cannot be that of a project is refused before the first question.
func TestInitChecksTheDirectoryFirst(t *testing.T) {
	w := newWorkshop(t)
	w.dir, w.answers = t.TempDir(), "example.com\n"
	code, screen := w.run(t.Context(), "init")
	clitest.ExpectCode(t, code, cmdutil.ExitUsage)
	if strings.Contains(screen, "Domain of the API groups") || !strings.Contains(screen, "--project-name ship-operator") {
		t.Error(screen)
	}
}

// A path through a file cannot be a directory, also inside of another module.
func TestDirThroughAFile(t *testing.T) {
	w := newWorkshop(t)
	w.must(initYard)
	file := filepath.Join(w.dir, "README.md")
	for _, line := range []string{initYard, "generate", "build", "deploy"} {
		for _, below := range []string{"sub", "sub/deeper"} {
			w.dir = filepath.Join(file, below)
			code, screen := w.run(t.Context(), strings.Fields(line)...)
			clitest.ExpectCode(t, code, cmdutil.ExitUsage)
			if !strings.Contains(screen, "README.md is a file, not a directory\n  select a directory: --dir DIR") {
				t.Errorf("%s: %s", below, screen)
			}
		}
	}
}

func TestScaffoldAsks(t *testing.T) {
	w := newWorkshop(t)
	w.answers = "example.com\nexample.com/yard\n\nmit\n"
	code, screen := w.run(t.Context(), "init")
	clitest.ExpectCode(t, code, cmdutil.ExitOK)
	for _, want := range []string{"Domain of the API groups [example.com]: ", "Path of the Go module [example.com/FOLDER]: ", "Copyright owner [The "} {
		if !strings.Contains(screen, want) {
			t.Errorf("%q is not asked\n%s", want, screen)
		}
	}
	if files := w.files(); !strings.Contains(files["PROJECT"], "repo: example.com/yard\n") || !strings.Contains(files["hack/boilerplate.go.txt"], "MIT") {
		t.Errorf("the answers were not heard: %s%s", files["PROJECT"], files["hack/boilerplate.go.txt"])
	}
	w.answers = "ship\n\nFrigate\n"
	code, _ = w.run(t.Context(), "create", "api")
	clitest.ExpectCode(t, code, cmdutil.ExitOK)
	if !strings.Contains(w.files()["PROJECT"], "kind: Frigate") {
		t.Error("Frigate of ship/v1 does not exist")
	}
	before := w.files()
	w.answers = "ship\n" // and then the terminal is closed
	code, screen = w.run(t.Context(), "create", "webhook")
	clitest.ExpectCode(t, code, cmdutil.ExitError)
	if !strings.Contains(screen, "no answer was given; nothing was written") || !maps.Equal(before, w.files()) {
		t.Errorf("got\n%s", screen)
	}
}

func TestFlagsAreNotAskedFor(t *testing.T) {
	w := newWorkshop(t)
	w.answers = "never.read\n"
	code, screen := w.run(t.Context(), strings.Fields(initYard)...)
	clitest.ExpectCode(t, code, cmdutil.ExitOK)
	if strings.Contains(screen, "]: ") {
		t.Errorf("something was asked:\n%s", screen)
	}
}

func TestFlagsOfOtherTools(t *testing.T) {
	w := newWorkshop(t)
	w.must(initYard+" --skip-go-version-check --plugins go/v4", addFrigate+" --make=false --resource --controller")
}

func TestWhatFailsLaterIsTakenBack(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"problems":    {&generate.Error{Problems: []generate.Problem{{File: "api/v1/other.go", Line: 3, Message: "undefined: Thing"}}}, "no file was changed"},
		"interrupted": {context.Canceled, "interrupted: no file was changed"},
		"the disk":    {errors.New("the disk is full"), "no file was changed"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorkshop(t)
			w.must(initYard)
			before := w.files()
			w.generate = fakeGenerate(nil, test.err)
			code, screen := w.run(t.Context(), strings.Fields(addFrigate)...)
			clitest.ExpectCode(t, code, cmdutil.ExitError)
			if !strings.Contains(screen, test.want) {
				t.Errorf("got\n%s", screen)
			}
			if after := w.files(); !maps.Equal(before, after) {
				t.Errorf("it was %q and is %q", slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after)))
			}
			w.must(addFrigate + " --no-generate")
		})
	}
}

// killedProject is what an opdock leaves that is killed while it generates: files that belong together, not all of them.
func killedProject(t *testing.T) (left *workshop, before map[string]string) {
	t.Helper()
	w := newWorkshop(t)
	w.must(initYard)
	before = w.files()
	left = newWorkshop(t)
	w.generate = func(context.Context, generate.Options) (*generate.Result, error) {
		return &generate.Result{}, os.CopyFS(left.dir, os.DirFS(w.dir))
	}
	w.must(addFrigate)
	if slices.Equal(slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(left.files()))) {
		t.Fatal("nothing was written")
	}
	return left, before
}

func TestWhatWasKilledIsTakenBack(t *testing.T) {
	left, before := killedProject(t)
	code, screen := left.run(t.Context(), strings.Fields("delete api --group ship --version v1 --kind Frigate")...)
	clitest.ExpectCode(t, code, cmdutil.ExitUsage)
	if !strings.Contains(screen, "was killed while writing this project. Its changes were rolled back: ") || !strings.Contains(screen, "Frigate of ship/v1 does not exist") {
		t.Errorf("got\n%s", screen)
	}
	if after := left.files(); !maps.Equal(before, after) {
		t.Errorf("it was %q and is %q", slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after)))
	}
	// Some of them find something else that is wrong, so that the test need not wait until they have done their work.
	for _, verb := range []string{addFrigate, "generate", "dev --main ./none", "install --kubeconfig /none", "build --main ./none"} {
		left, _ := killedProject(t)
		if _, screen := left.run(t.Context(), strings.Fields(verb)...); !strings.Contains(screen, "were rolled back: ") {
			t.Errorf("got\n%s", screen)
		}
	}
}

func TestKilledWriteIsNotRolledBackAfterLaterEdits(t *testing.T) {
	left, _ := killedProject(t)
	edited := filepath.Join(left.dir, "api/v1/frigate_types.go")
	if err := os.WriteFile(edited, []byte("package v1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	before := left.files()
	_, screen := left.run(t.Context(), "generate")
	if !strings.Contains(screen, "could not be rolled back. Edited since: api/v1/frigate_types.go") {
		t.Errorf("got\n%s", screen)
	}
	delete(before, filewrite.JournalName)
	if after := left.files(); !maps.Equal(before, after) {
		t.Errorf("it was %q and is %q", slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after)))
	}
}

func TestInterruptedBeforeWriting(t *testing.T) {
	w := newWorkshop(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	code, screen := w.run(ctx, strings.Fields(initYard)...)
	clitest.ExpectCode(t, code, cmdutil.ExitError)
	if !strings.Contains(screen, "interrupted: no file was changed") || len(w.files()) > 0 {
		t.Errorf("got\n%s", screen)
	}
}

func TestAsking(t *testing.T) {
	var out bytes.Buffer
	ask := cmdutil.Asking(strings.NewReader("one\n\nwrong\nright\nlast"), &out)
	notWrong := func(answer string) error {
		if answer == "wrong" {
			return errors.New("that is wrong")
		}
		return nil
	}
	for _, want := range []string{"one", "proposal", "right", "last"} {
		if got, err := ask(t.Context(), "Question", "proposal", notWrong); err != nil || got != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	if strings.Count(out.String(), "  that is wrong\n") != 1 {
		t.Errorf("it was asked:\n%s", out.String())
	}
	if _, err := ask(t.Context(), "Question", "proposal", nil); err == nil {
		t.Error("no answer is no error")
	}
}

// The first Ctrl-C ends a question, although nothing is typed.
func TestAskingIsInterrupted(t *testing.T) {
	typed, keyboard := io.Pipe()
	defer keyboard.Close()
	ctx, interrupt := context.WithCancel(t.Context())
	ask := cmdutil.Asking(typed, io.Discard)
	failed := make(chan error)
	go func() {
		_, err := ask(ctx, "Question", "", nil)
		failed <- err
	}()
	interrupt()
	if err := <-failed; err == nil || err.Error() != "interrupted: no file was changed" {
		t.Errorf("got %v", err)
	}
}

func TestUnknownThingsCannotBeCreated(t *testing.T) {
	for _, verb := range []string{"create", "delete"} {
		code, screen := newConsole(nil).Screen(t.Context(), verb, "nonsense")
		clitest.ExpectCode(t, code, cmdutil.ExitUsage)
		if !strings.Contains(screen, `unknown command "nonsense" for "opdock `+verb+`"`) {
			t.Errorf("got\n%s", screen)
		}
	}
}

func TestTyposAreExplained(t *testing.T) {
	for line, want := range map[string]string{
		"create apis":                  "did you mean: api\n",
		"delete webhok":                "did you mean: webhook\n",
		"create api --knd Frigate":     "did you mean: --kind\n",
		"create webhook --validation":  "did you mean: --programmatic-validation\n",
		"create api --nothing-like-it": "see: opdock create api --help\n",
	} {
		code, screen := newConsole(nil).Screen(t.Context(), strings.Fields(line)...)
		clitest.ExpectCode(t, code, cmdutil.ExitUsage)
		if !strings.Contains(screen, want) || strings.Contains(line, "nothing") && strings.Contains(screen, "did you mean") {
			t.Errorf("got\n%s", screen)
		}
	}
}

func TestAKindInCapitalsIsARemark(t *testing.T) {
	for kind, remark := range map[string]bool{"FOO": true, "KAPP": true, "Foo": false, "VM": false, "HTTPGate": false} {
		w := newWorkshop(t)
		w.must(initYard)
		code, screen := w.run(t.Context(), "create", "api", "--group", "ship", "--version", "v1", "--kind", kind)
		clitest.ExpectCode(t, code, cmdutil.ExitOK)
		if got := strings.Contains(screen, "kinds are usually written like "); got != remark {
			t.Errorf("%s: got\n%s", kind, screen)
		}
	}
}

// Every verb below create and delete has what those on top have.
func TestScaffoldHelp(t *testing.T) {
	for _, line := range []string{"create api", "create webhook", "delete api", "delete webhook"} {
		code, screen := newConsole(nil).Screen(t.Context(), append(strings.Fields(line), "--help")...)
		clitest.ExpectCode(t, code, cmdutil.ExitOK)
		if !strings.Contains(screen, "\nExamples:\n  ") {
			t.Errorf("%s has no examples:\n%s", line, screen)
		}
		for one := range strings.Lines(screen) {
			if len(one) > 141 {
				t.Errorf("%s: line of %d characters: %s", line, len(one), one)
			}
		}
	}
}
