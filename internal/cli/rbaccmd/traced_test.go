// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package rbaccmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opdock/opdock/internal/cli/clitest"
	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/testenv"
)

// traced makes a recording of a program that was traced in the directory of the project.
func traced(t *testing.T, path, user, command string) string {
	t.Helper()
	record(t, path, "ship", sailing())
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	header := strings.Replace(string(content), identity, user, 1)
	header = strings.Replace(header, `{"opdock"`, `{"traced":true,"command":["`+strings.ReplaceAll(command, " ", `","`)+`"],"opdock"`, 1)
	if err := os.WriteFile(path, []byte(header), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTracedProgramsAreNotTheOperator(t *testing.T) {
	dir, home := testenv.Dir(t, shipFiles), t.TempDir()
	recordings := filepath.Join(home, "dev/ship/recordings")
	run := func(args ...string) (int, string) {
		s := newConsole(nil)
		s.Dock.Home = func() string { return home }
		return screen(t, s, dir, append(args, "--dir", dir)...)
	}
	administrators := traced(t, filepath.Join(recordings, "1.jsonl"), "administrator", "./load-test --all")
	const note = `a recording is not counted because it is of "./load-test --all" as administrator, and not of the operator; to count it, name it: `
	code, text := run()
	clitest.ExpectCode(t, code, cmdutil.ExitError)
	if !strings.Contains(text, "there are no recordings of ship") || !strings.Contains(text, note+administrators) {
		t.Errorf("without others, it says\n%s", text)
	}

	kubectls := traced(t, filepath.Join(recordings, "2.jsonl"), identity, "/usr/bin/kubectl apply -f app.yaml")
	traced(t, filepath.Join(recordings, "3.jsonl"), identity, "./bin/manager")
	code, text = run()
	clitest.ExpectCode(t, code, cmdutil.ExitOK)
	for _, want := range []string{"ship: 9 requests as " + identity + " in 1 recording\n", "! " + note + administrators + "\n", `"/usr/bin/kubectl apply -f app.yaml" as ` + identity, kubectls} {
		if !strings.Contains(text, want) {
			t.Errorf("got\n%swant %s", text, want)
		}
	}

	code, text = run(administrators)
	clitest.ExpectCode(t, code, cmdutil.ExitOK)
	if !strings.Contains(text, "ship: 9 requests as administrator in 1 recording\n") || strings.Contains(text, "not counted") {
		t.Errorf("if it is named, it says\n%s", text)
	}
}

// TestRecordingsThatCannotBeRead are left out, unless they are named.
func TestRecordingsThatCannotBeRead(t *testing.T) {
	dir, home := testenv.Dir(t, shipFiles), t.TempDir()
	recordings := filepath.Join(home, "dev/ship/recordings")
	run := func(args ...string) (int, string) {
		s := newConsole(nil)
		s.Dock.Home = func() string { return home }
		return screen(t, s, dir, append(args, "--dir", dir)...)
	}
	spoil := func(name, old, now string) string {
		path := record(t, filepath.Join(recordings, name), "ship", sailing())
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.Replace(string(content), old, now, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	damaged, newer := spoil("1.jsonl", `"seq":3,`, `"seq":3`+"\x00,"), spoil("2.jsonl", `"version":1`, `"version":99`)
	code, text := run()
	clitest.ExpectCode(t, code, cmdutil.ExitError)
	if !strings.Contains(text, "no recording of ship can be read") || !strings.Contains(text, damaged) || !strings.Contains(text, newer) {
		t.Errorf("without others, it says\n%s", text)
	}

	record(t, filepath.Join(recordings, "3.jsonl"), "ship", sailing())
	code, text = run()
	clitest.ExpectCode(t, code, cmdutil.ExitOK)
	for _, want := range []string{
		"ship: 9 requests as " + identity + " in 1 recording\n", "! a recording is not counted because it cannot be read: 1.jsonl: line 4 of the recording is damaged; it is in " + damaged + "\n",
		"! a recording is not counted because it cannot be read: 2.jsonl: ", "it is in " + newer + "\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("got\n%swant %s", text, want)
		}
	}

	for _, path := range []string{damaged, newer} {
		if code, _ := run(path); code == cmdutil.ExitOK {
			t.Errorf("%s is counted", path)
		}
	}
}
