// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const (
	goBehaviourEnv = "OPDOCK_TEST_GO"     // how the fake go command behaves
	goLogEnv       = "OPDOCK_TEST_GO_LOG" // file to which it writes how it was called
	goModuleEnv    = "OPDOCK_TEST_GO_DIR" // folder that it has "downloaded"
)

// useFakeGo puts a fake go command on PATH and returns the file that it logs to.
func useFakeGo(t *testing.T, behaviour string) string {
	t.Helper()
	bin := t.TempDir()
	if err := os.Symlink(testBinary(t), filepath.Join(bin, "go")); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "calls")
	t.Setenv("PATH", bin)
	t.Setenv(goBehaviourEnv, behaviour)
	t.Setenv(goLogEnv, log)
	return log
}

// fakeGo is the go command as far as building is concerned: four packages, of which one is in the cache.
func fakeGo(args []string) int {
	dir, _ := os.Getwd()
	log, err := os.OpenFile(os.Getenv(goLogEnv), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Fprintf(log, "%s GOWORK=%s CGO_ENABLED=%s GOFLAGS=%s in %s\n",
		strings.Join(args, " "), os.Getenv("GOWORK"), os.Getenv("CGO_ENABLED"), os.Getenv("GOFLAGS"), dir)

	behaviour := os.Getenv(goBehaviourEnv)
	switch {
	case args[0] == "list" && args[1] == "-m":
		return 1
	case args[0] == "mod":
		fmt.Fprintln(os.Stderr, "go: downloading the module")
		answer := map[string]string{"Dir": os.Getenv(goModuleEnv)}
		if behaviour == "offline" {
			answer = map[string]string{"Error": "no route to host"}
		}
		_ = json.NewEncoder(os.Stdout).Encode(answer)
		if behaviour == "offline" {
			return 1
		}
	case args[0] == "list":
		fmt.Fprintln(os.Stderr, "go: downloading k8s.io/api v0.36.3")
		fmt.Print("unsafe\n\nfmt\nk8s.io/api/core/v1\n")
		if behaviour == "list fails" {
			fmt.Fprintln(os.Stderr, "go: k8s.io/api: no route to host")
			return 1
		}
	case args[0] == "build":
		return fakeGoBuild(args, behaviour)
	}
	return 0
}

func fakeGoBuild(args []string, behaviour string) int {
	fmt.Fprint(os.Stderr, "unsafe\nfmt\n")
	switch behaviour {
	case "broken":
		fmt.Fprint(os.Stderr, "# k8s.io/api/core/v1\n./types.go:7:2: undefined: Pod\n")
		return 1
	case "slow":
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGINT)
		<-signals
		return 1
	}
	fmt.Fprint(os.Stderr, "k8s.io/api/core/v1\n")
	for i, arg := range args {
		if arg == "-o" {
			if err := os.WriteFile(args[i+1], []byte("binary"), 0o755); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
		}
	}
	return 0
}
