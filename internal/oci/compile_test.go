// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/opdock/opdock/internal/testenv"
)

// program writes a Go module to compile.
func program(t *testing.T, source string) Source {
	t.Helper()
	dir := t.TempDir()
	testenv.WriteFiles(t, dir, map[string]string{"go.mod": "module example.com/small\n\ngo 1.26.0\n", "cmd/main.go": source})
	return Source{Dir: dir, Package: "./cmd", Errors: &bytes.Buffer{}}
}

func TestCompile(t *testing.T) {
	source := program(t, "//go:build special\n\npackage main\n\nvar text = \"nothing\"\n\nfunc main() { println(text) }\n")
	source.LDFlags, source.Tags = "-X main.text=something", "special"
	first, err := source.Compile(t.Context(), HostPlatform())
	if err != nil {
		t.Fatalf("%v: %s", err, source.Errors)
	}
	again, err := source.Compile(t.Context(), HostPlatform())
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Content, again.Content) {
		t.Error("compiling again makes another program")
	}
	if runtime.GOOS != "linux" {
		t.Skip("the program runs on Linux")
	}
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, first.Content, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(path).CombinedOutput(); err != nil || string(out) != "something\n" {
		t.Errorf("the program said %q, %v", out, err)
	}
}

// A program whose source has not changed is not linked again.
func TestCompileAgain(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("for another platform, go links it each time")
	}
	source := program(t, "package main\n\nfunc main() { println(1) }\n")
	source.Cache = t.TempDir()
	compile := func() (content []byte, linked os.FileInfo) {
		t.Helper()
		made, err := source.Compile(t.Context(), HostPlatform())
		if err != nil {
			t.Fatalf("%v: %s", err, source.Errors)
		}
		kept, err := filepath.Glob(filepath.Join(source.Cache, "*", "*"))
		if err != nil || len(kept) != 1 {
			t.Fatalf("kept are %q, %v", kept, err)
		}
		info, err := os.Stat(kept[0])
		if err != nil {
			t.Fatal(err)
		}
		return made.Content, info
	}
	first, linked := compile()
	// go sets the time of a program that is up to date, and replaces one that it links.
	if again, relinked := compile(); !bytes.Equal(first, again) || !os.SameFile(relinked, linked) {
		t.Error("the program was linked again")
	}
	if err := os.WriteFile(filepath.Join(source.Dir, "cmd", "main.go"), []byte("package main\n\nfunc main() { println(2) }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if other, _ := compile(); bytes.Equal(first, other) {
		t.Error("the program from before was taken")
	}
}

func TestCompileErrors(t *testing.T) {
	source := program(t, "package main\n\nfunc main() { undefined() }\n")
	_, err := source.Compile(t.Context(), HostPlatform())
	if err == nil || !strings.Contains(err.Error(), "./cmd for linux/") {
		t.Errorf("the error is %v", err)
	}
	if said := source.Errors.(*bytes.Buffer).String(); !strings.Contains(said, "cmd/main.go:3:15: undefined: undefined") {
		t.Errorf("the compiler said %q", said)
	}
}

func TestPlatforms(t *testing.T) {
	for text, expected := range map[string][]string{
		"linux/amd64": nil, "linux/arm/v7": {"GOARM=7"}, "linux/amd64/v3": {"GOAMD64=v3"},
	} {
		platform, err := ParsePlatform(text)
		if err != nil || platform.String() != text {
			t.Errorf("%s became %s, %v", text, platform, err)
		}
		if env := variantEnv(platform); !slices.Equal(env, expected) {
			t.Errorf("%s is compiled with %q", text, env)
		}
	}
	for _, wrong := range []string{"", "linux", "linux/", "/amd64", "a/b/c/d", "linux/foo", "windows/amd64"} {
		if _, err := ParsePlatform(wrong); err == nil {
			t.Errorf("%q is a platform", wrong)
		}
	}
}

func TestSourceDate(t *testing.T) {
	if date, err := SourceDate("1700000000"); err != nil || date.Unix() != 1_700_000_000 {
		t.Errorf("%v, %v", date, err)
	}
	if date, err := SourceDate(""); err != nil || date.Unix() != 0 {
		t.Errorf("%v, %v", date, err)
	}
	if _, err := SourceDate("yesterday"); err == nil {
		t.Error("there is no error")
	}
}
