// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestHome(t *testing.T) {
	work := t.TempDir()
	t.Chdir(work)
	cases := map[string]struct {
		opdock, state, home string
		want                string
	}{
		"own":           {"/o", "/s", "/h", "/o"},
		"own, relative": {"o", "/s", "/h", filepath.Join(work, "o")},
		"xdg":           {"", "/s", "/h", "/s/opdock"},
		"xdg, relative": {"", "s", "/h", "/h/.local/state/opdock"},
		"home":          {"", "", "/h", "/h/.local/state/opdock"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv(homeEnv, c.opdock)
			t.Setenv("XDG_STATE_HOME", c.state)
			t.Setenv("HOME", c.home)
			if got := Home(); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
	t.Run("no home", func(t *testing.T) {
		t.Setenv(homeEnv, "")
		t.Setenv("XDG_STATE_HOME", "")
		t.Setenv("HOME", "")
		if got := Home(); !filepath.IsAbs(got) {
			t.Errorf("got %s", got)
		}
	})
}

func TestStateDirIsPrivate(t *testing.T) {
	isolate(t)
	if err := os.MkdirAll(clusterDir("dev"), 0o755); err != nil {
		t.Fatal(err)
	}
	dir, err := makeStateDir("dev")
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	// A file where the folder should be.
	if err := os.WriteFile(clusterDir("other"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := makeStateDir("other"); err == nil || !strings.Contains(err.Error(), homeEnv) {
		t.Errorf("error is %v", err)
	}
}

func TestLogRotates(t *testing.T) {
	isolate(t)
	dir := t.TempDir()
	path := filepath.Join(dir, logFileName)
	open := func() *logSink {
		t.Helper()
		s, err := openLog(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.close)
		return s
	}
	if s := open(); s.from != 0 || s.path != path {
		t.Errorf("new log: %+v", s)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := os.Truncate(path, maxLogSize); err != nil {
		t.Fatal(err)
	}
	if s := open(); s.from != maxLogSize || exists(path+".1") {
		t.Errorf("a log of just the size is rotated: %+v", s)
	}
	if err := os.Truncate(path, maxLogSize+1); err != nil {
		t.Fatal(err)
	}
	if s := open(); s.from != 0 {
		t.Errorf("a log that is too large is not rotated: %+v", s)
	}
	if info, err := os.Stat(path + ".1"); err != nil || info.Size() != maxLogSize+1 {
		t.Errorf("the old log: %v, %v", info, err)
	}
	// A second start that found the large log a moment ago must see that it is done.
	open()
	if info, err := os.Stat(path + ".1"); err != nil || info.Size() != maxLogSize+1 {
		t.Errorf("the old log is lost: %v, %v", info, err)
	}
}

func TestExcerptOfALog(t *testing.T) {
	many := strings.Repeat("line\n", 50)
	cases := map[string]struct {
		log, first, last string
		count            int
	}{
		"few":         {"a\nb\n", "a", "b", 2},
		"many":        {many + "end\n", "line", "end", excerptLines},
		"panic":       {"a\npanic: cause\n" + many, "panic: cause", "line", excerptLines},
		"fatal error": {"fatal error: all goroutines are asleep\nb\n", "fatal error: all goroutines are asleep", "b", 2},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := tellingLines([]byte(c.log))
			if len(got) != c.count || got[0] != c.first || got[len(got)-1] != c.last {
				t.Errorf("got %q", got)
			}
		})
	}
	if got := tellingLines([]byte(" \n")); got != nil {
		t.Errorf("of nothing: %q", got)
	}
}

func TestTailForgets(t *testing.T) {
	log := tail{limit: 10}
	for range 100 {
		if n, err := log.Write([]byte("0123456")); n != 7 || err != nil {
			t.Fatal(n, err)
		}
	}
	if got := string(log.bytes()); len(got) > 27 || !strings.HasSuffix(strings.Repeat("0123456", 4), got[len(got)-10:]) {
		t.Errorf("kept %q", got)
	}
}

func TestHomeAmongOthersMustBeOurs(t *testing.T) {
	ours := os.Getuid()
	for name, test := range map[string]struct {
		prepare func(top string) error
		uid     int
		problem string
	}{
		"nothing there":   {func(string) error { return nil }, ours, ""},
		"ours":            {func(top string) error { return os.MkdirAll(filepath.Join(top, "clusters", "dock"), 0o700) }, ours, ""},
		"of another user": {func(top string) error { return os.Mkdir(top, 0o700) }, ours + 1, "belongs to user"},
		"open to others":  {func(top string) error { return errors.Join(os.Mkdir(top, 0o700), os.Chmod(top, 0o777)) }, ours, "is writable by other users (mode -rwxrwxrwx)"},
		"open to a group, below": {func(top string) error {
			return errors.Join(os.MkdirAll(filepath.Join(top, "clusters"), 0o700), os.Chmod(filepath.Join(top, "clusters"), 0o770))
		}, ours, "clusters is writable by other users"},
		"a link": {func(top string) error { return os.Symlink(filepath.Dir(top), top) }, ours, "is not a directory"},
		"a link below": {func(top string) error {
			return errors.Join(os.Mkdir(top, 0o700), os.Symlink("/", filepath.Join(top, "clusters")))
		}, ours, "clusters is not a directory"},
		"a file": {func(top string) error { return os.WriteFile(top, nil, 0o600) }, ours, "is not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			top := filepath.Join(t.TempDir(), "opdock-1")
			if err := test.prepare(top); err != nil {
				t.Fatal(err)
			}
			err := checkOwned(top, filepath.Join(top, "clusters", "dock"), test.uid)
			if test.problem == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.problem) || !strings.Contains(err.Error(), homeEnv) {
				t.Errorf("got %v, want %q", err, test.problem)
			}
		})
	}
}
