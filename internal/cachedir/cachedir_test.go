// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cachedir

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDir(t *testing.T) {
	in := func(env map[string]string) func(string) string { return func(name string) string { return env[name] } }
	for name, c := range map[string]struct {
		env  map[string]string
		want string
	}{
		"chosen":     {map[string]string{"XDG_CACHE_HOME": "/c", "HOME": "/h"}, "/c/opdock"},
		"not chosen": {map[string]string{"HOME": "/h"}, "/h/"},
		"relative":   {map[string]string{"XDG_CACHE_HOME": "c", "HOME": "/h"}, "/h/"},
	} {
		if got, err := Dir(in(c.env)); err != nil || !strings.HasPrefix(got, c.want) || filepath.Base(got) != "opdock" {
			t.Errorf("%s: got %s, %v", name, got, err)
		}
	}
	if _, err := Dir(in(nil)); err == nil || !strings.Contains(err.Error(), "XDG_CACHE_HOME") {
		t.Errorf("without a home: %v", err)
	}
}

// Dir is where other programs of the user keep their caches too.
func TestDirIsTheUsers(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", "")
	want, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Dir(os.Getenv); err != nil || got != filepath.Join(want, "opdock") {
		t.Errorf("got %s, %v, want it in %s", got, err, want)
	}
}
