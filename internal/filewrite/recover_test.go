// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package filewrite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/opdock/opdock/internal/testenv"
)

// The variables that make a child of the test binary: what it does, where, and at which checkpoint it is killed.
const (
	childVariable = "FILEWRITE_TEST_CHILD"
	dirVariable   = "FILEWRITE_TEST_DIR"
	stepVariable  = "FILEWRITE_TEST_STEP"
)

func TestMain(m *testing.M) {
	work := map[string]func(ctx context.Context, dir string) error{
		"apply": func(ctx context.Context, dir string) error { return Apply(ctx, dir, testChanges()) },
		"transaction": func(ctx context.Context, dir string) error {
			t, err := Begin(ctx, dir)
			if err != nil {
				return err
			}
			if err := t.Apply(testChanges()); err != nil {
				return err
			}
			return errors.Join(Apply(t.Context(ctx), dir, secondChanges()), t.Commit())
		},
		"recover": func(ctx context.Context, dir string) error { _, err := Recover(ctx, dir); return err },
	}[os.Getenv(childVariable)]
	if work == nil {
		os.Exit(m.Run())
	}
	step, err := strconv.Atoi(os.Getenv(stepVariable))
	if err != nil {
		panic(err)
	}
	checkpoint = func() {
		if step--; step < 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // the signal is on its way
		}
	}
	if err := work(context.Background(), os.Getenv(dirVariable)); err != nil {
		panic(err)
	}
	os.Exit(0)
}

// secondChanges come after testChanges in a transaction.
func secondChanges() []Change {
	return []Change{
		{Path: "changed", Content: []byte("newer"), Before: []byte("new"), Mode: 0o600},
		{Path: "folder/again", Content: []byte("folder"), Mode: 0o600},
	}
}

// killed runs a child until its checkpoint of that number, and says whether it got that far.
func killed(t *testing.T, work, dir string, step int) bool {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), childVariable+"="+work, dirVariable+"="+dir, stepVariable+"="+strconv.Itoa(step))
	output, err := child.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
		return true
	}
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	return false
}

func TestKilledAnywhereItIsNothingOrEverything(t *testing.T) {
	for work, fewest := range map[string]int{"apply": 10, "transaction": 15} {
		t.Run(work, func(t *testing.T) {
			for step := 0; ; step++ {
				dir := t.TempDir()
				changes(t, dir)
				before := tree(t, dir)
				if !killed(t, work, dir, step) {
					if step < fewest {
						t.Errorf("there were only %d steps", step)
					}
					return
				}
				if _, err := os.Stat(filepath.Join(dir, JournalName)); err != nil {
					t.Errorf("step %d: no journal: %v", step, err)
				}
				if _, err := Recover(t.Context(), dir); err != nil {
					t.Fatalf("step %d: %v", step, err)
				}
				if after := tree(t, dir); !maps.Equal(after, before) {
					t.Errorf("step %d: got %v, want %v", step, after, before)
				}
			}
		})
	}
}

// lastStep leaves a folder in which everything was written, but not finished.
func lastStep(t *testing.T, work string) (dir string, before map[string]string) {
	t.Helper()
	for step := 0; ; step++ {
		next := t.TempDir()
		changes(t, next)
		original := tree(t, next)
		if !killed(t, work, next, step) {
			return dir, before
		}
		dir, before = next, original
	}
}

func TestRecoveryCanBeKilledToo(t *testing.T) {
	left, before := lastStep(t, "transaction")
	for step := 0; ; step++ {
		// The project has been moved, too.
		dir := filepath.Join(t.TempDir(), "moved")
		if err := os.CopyFS(dir, os.DirFS(left)); err != nil {
			t.Fatal(err)
		}
		if !killed(t, "recover", dir, step) {
			if step < 5 {
				t.Errorf("there were only %d steps", step)
			}
			return
		}
		if _, err := Recover(t.Context(), dir); err != nil {
			t.Fatal(err)
		}
		after := map[string]string{}
		for name, content := range tree(t, dir) {
			after[strings.Replace(name, dir, left, 1)] = content
		}
		if !maps.Equal(after, before) {
			t.Errorf("step %d: got %v, want %v", step, after, before)
		}
	}
}

func TestLaterEditsAreKept(t *testing.T) {
	dir, _ := lastStep(t, "apply")
	testenv.WriteFile(t, filepath.Join(dir, "changed"), "by hand")
	want := tree(t, dir)
	delete(want, filepath.Join(dir, JournalName))
	found, err := Recover(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(found.Edited, []string{"changed"}) || len(found.TakenBack) > 0 {
		t.Errorf("got %+v", found)
	}
	if after := tree(t, dir); !maps.Equal(after, want) {
		t.Errorf("got %v, want %v", after, want)
	}
}

func TestTheNextWriterRecoversAsWell(t *testing.T) {
	dir, _ := lastStep(t, "apply")
	if err := Apply(t.Context(), dir, testChanges()); err != nil {
		t.Fatal(err)
	}
	if after := tree(t, dir); !maps.Equal(after, changed(dir)) {
		t.Errorf("got %v", after)
	}
}

func TestALineThatIsNotCompleteWasNeverActedUpon(t *testing.T) {
	dir, before := lastStep(t, "apply")
	name := filepath.Join(dir, JournalName)
	line, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	testenv.WriteFile(t, name, string(line)+string(bytes.TrimSpace(line))[:len(line)/2])
	if _, err := Recover(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if after := tree(t, dir); !maps.Equal(after, before) {
		t.Errorf("got %v, want %v", after, before)
	}
}

func TestForeignJournalReachesOnlyTheProject(t *testing.T) {
	const (
		evil      = `"before":"ZXZpbA==","mode":493`
		temporary = ".opdock-ABCDEFGHIJKL.tmp"
	)
	for name, test := range map[string]struct{ entry, victim string }{
		"outside":                    {`"path":"../mine","temporary":"../` + temporary + `",` + evil, "mine"},
		"a file to take away":        {`"path":"new","temporary":"../mine",` + evil, "mine"},
		"outside, through links":     {`"path":"out/mine","temporary":"out/` + temporary + `",` + evil, "mine"},
		"of git":                     {`"path":".git/hooks/mine","temporary":".git/hooks/` + temporary + `",` + evil, "project/.git/hooks/mine"},
		"of git, through links":      {`"path":"hooks/mine","temporary":"hooks/` + temporary + `",` + evil, "project/.git/hooks/mine"},
		"not temporary":              {`"path":"new","temporary":"main.go",` + evil, "project/main.go"},
		"not temporary by its end":   {`"path":"new","temporary":".opdock-main.go",` + evil, "project/.opdock-main.go"},
		"temporary, in another part": {`"path":"new","temporary":"other/` + temporary + `",` + evil, "project/other/" + temporary},
	} {
		t.Run(name, func(t *testing.T) {
			parent := t.TempDir()
			dir, victim := filepath.Join(parent, "project"), filepath.Join(parent, test.victim)
			testenv.WriteFile(t, filepath.Join(dir, JournalName), `{"files":[{`+test.entry+`,"after":"`+hashOf([]byte("mine"))+`"}]}`+"\n")
			testenv.WriteFile(t, victim, "mine")
			for link, target := range map[string]string{"out": "..", "hooks": ".git/hooks"} {
				if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := Recover(t.Context(), dir); err != nil {
				t.Fatal(err)
			}
			if content, err := os.ReadFile(victim); err != nil || string(content) != "mine" {
				t.Errorf("got %q, %v", content, err)
			}
		})
	}
}

// TestAJournalGrantsNothingButPermissions has a file restored that a journal wants to run as its owner.
func TestAJournalGrantsNothingButPermissions(t *testing.T) {
	dir := t.TempDir()
	testenv.WriteFile(t, filepath.Join(dir, "program"), "new")
	testenv.WriteFile(t, filepath.Join(dir, JournalName), fmt.Sprintf(`{"files":[{"path":"program","temporary":".opdock-ABCDEFGHIJKL.tmp","before":"b2xk","mode":%d,"after":%q}]}`+"\n",
		fs.ModeSetuid|0o755, hashOf([]byte("new"))))
	if found, err := Recover(t.Context(), dir); err != nil || len(found.TakenBack) != 1 {
		t.Fatalf("got %v, %v", found, err)
	}
	info, err := os.Stat(filepath.Join(dir, "program"))
	if err != nil || info.Mode() != 0o755 {
		t.Errorf("got %v, %v", info.Mode(), err)
	}
}

func TestAJournalThatIsALinkIsNotWrittenTo(t *testing.T) {
	dir := t.TempDir()
	victim := filepath.Join(t.TempDir(), "mine")
	testenv.WriteFile(t, victim, "mine")
	if err := os.Symlink(victim, filepath.Join(dir, JournalName)); err != nil {
		t.Fatal(err)
	}
	if _, err := Begin(t.Context(), dir); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("got %v", err)
	}
	if content, err := os.ReadFile(victim); err != nil || string(content) != "mine" {
		t.Errorf("got %q, %v", content, err)
	}
}

func TestOnlyOneWritesAtATime(t *testing.T) {
	dir := t.TempDir()
	all := changes(t, dir)
	first, err := Begin(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Apply(impatient, dir, all); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	written := make(chan error)
	go func() { written <- Apply(t.Context(), dir, all) }()
	if err := errors.Join(first.Apply(all[:1]), first.Commit(), <-written); err != nil {
		t.Fatal(err)
	}
	if after := tree(t, dir); !maps.Equal(after, changed(dir)) {
		t.Errorf("got %v", after)
	}
}
