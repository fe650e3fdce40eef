// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/opdock/opdock/internal/pki"
)

// This file holds the other processes that the tests need. All of them are this test binary again,
// called with other arguments or by another name.

// behaviourEnv tells the fake control plane how to behave.
const behaviourEnv = "OPDOCK_TEST_BEHAVIOUR"

func TestMain(m *testing.M) {
	mode := ""
	if len(os.Args) > 1 {
		mode = os.Args[1]
	}
	switch {
	case filepath.Base(os.Args[0]) == "go":
		os.Exit(fakeGo(os.Args[1:]))
	case mode == "serve":
		os.Exit(fakeControlPlane(os.Args[2:], os.Getenv(behaviourEnv)))
	case mode == "snapshot":
		os.Exit(fakeSnapshot(os.Args[2:], os.Getenv(behaviourEnv)))
	case mode == "save":
		os.Exit(fakeSaver(os.Args[2], os.Args[3]))
	case mode == "hold":
		os.Exit(fakeHolder(os.Args[2]))
	case mode == "bystander":
		// Lives until its standard input ends.
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	// With the race detector every process would sleep for a second before it exits.
	if os.Getenv("GORACE") == "" {
		os.Setenv("GORACE", "atexit_sleep_ms=0")
	}
	os.Exit(m.Run())
}

// testBinary is what to start as a fake control plane.
func testBinary(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// isolate keeps a test away from the state and cache of the user, and from those of other tests.
func isolate(t *testing.T) {
	t.Helper()
	t.Setenv(homeEnv, t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv(binaryEnv, "")
	t.Setenv(behaviourEnv, "")
}

// fakeControlPlane speaks the protocol of the real one and keeps the same files.
func fakeControlPlane(args []string, behaviour string) int {
	flags := flag.NewFlagSet("serve", flag.ExitOnError)
	dir := flags.String("dir", "", "")
	flags.Int("nodes", 0, "")
	port := flags.Int("port", 0, "")
	ephemeral := flags.Bool("ephemeral", false, "")
	durable := flags.Bool("durable", false, "")
	from := flags.String("from", "", "")
	replace := flags.Bool("replace", false, "")
	history := flags.Duration("history", 0, "")
	flags.String("kubernetes", "", "")
	flags.String("admission-plugins", "", "")
	reportTo := flags.Int("report-fd", -1, "")
	lifeline := flags.Int("lifeline-fd", -1, "")
	_ = flags.Parse(args)

	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGUSR1)
	reports := os.NewFile(uintptr(*reportTo), "report")
	tell := func(format string, values ...any) { fmt.Fprintf(reports, format+"\n", values...) }
	fail := func(reason Reason) int {
		tell(`{"event":"error","reason":%q,"message":"the message for %s","hint":"the hint for %s"}`, reason, reason, reason)
		return 1
	}
	fmt.Fprintln(os.Stderr, "fake control plane: starting")
	ended := make(chan struct{})
	if *lifeline >= 0 {
		go func() {
			_, _ = io.Copy(io.Discard, os.NewFile(uintptr(*lifeline), "lifeline"))
			close(ended)
		}()
	}

	if reason, ok := strings.CutPrefix(behaviour, "error "); ok {
		return fail(Reason(reason))
	}
	lock, err := takeLock(*dir)
	if err != nil {
		return fail(ReasonLocked)
	}
	switch behaviour {
	case "die":
		fmt.Fprintln(os.Stderr, "fake control plane: something is wrong")
		return 3
	case "panic":
		fmt.Fprintf(os.Stderr, "panic: the cause\n%s", strings.Repeat("\tstack\n", 100))
		return 2
	case "speechless":
		reports.Close()
		fmt.Fprintln(os.Stderr, "fake control plane: closed the report pipe")
		return 0
	}
	if behaviour == "refuses to replace" && *replace {
		_ = lock.Truncate(0)
		return fail(ReasonBadSnapshot)
	}
	if *from != "" {
		_ = os.WriteFile(filepath.Join(*dir, "from"), []byte(*from), 0o600)
	}
	if old, found, _ := readState(*dir); found && old.Ephemeral && !old.Kept {
		_ = os.Remove(filepath.Join(*dir, stateFileName))
	}
	if err := writeFakeState(*dir, savedState{Port: *port, Ephemeral: *ephemeral, Durable: *durable, History: *history}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	tell(`{"event":"progress","step":"state","message":"the state is there","elapsedMs":1}`)
	tell(`{"event":"progress","step":"etcd","message":"etcd is up","elapsedMs":52}`)
	if behaviour == "hang" {
		select {
		case <-signals:
		case <-ended:
		}
		return fail(ReasonInterrupted)
	}
	tell(`this line is of a later version`)
	tell(`{"event":"weather","message":"neither is this event known"}`)
	tell(`{"event":"ready","kubeconfig":%q,"pid":%d,"elapsedMs":640}`, filepath.Join(*dir, kubeconfigFileName), os.Getpid())

	keep := false
	select {
	case s := <-signals:
		keep = s == syscall.SIGUSR1
	case <-ended:
	}
	content := fmt.Sprintf(`{"pid":%d,"stopping":true}`, os.Getpid())
	_, _ = lock.WriteAt([]byte(content+strings.Repeat(" ", 100)), 0)
	switch behaviour {
	case "slow":
		// Ends when the test says so. Another signal would be a stop that is not clean.
		for !exists(os.Getenv("OPDOCK_TEST_MARKER")) {
			select {
			case <-signals:
				return 5
			case <-time.After(time.Millisecond):
			}
		}
	case "stubborn":
		select {} // deaf to SIGTERM; only SIGKILL ends it
	case "dirty":
		fmt.Fprintln(os.Stderr, "fake control plane: could not stop cleanly")
		return 4
	case "succeeded":
		// Looks as if it had ended and another one had taken the lock between two looks.
		_ = os.WriteFile(lock.Name(), []byte(`{"pid":999999999}`), 0o600)
		<-signals
		return 0
	case "unlink first":
		_ = os.Remove(lock.Name())
		time.Sleep(100 * time.Millisecond)
		_ = os.WriteFile(os.Getenv("OPDOCK_TEST_MARKER"), nil, 0o600)
	}
	switch {
	case *ephemeral && keep:
		state, _ := os.ReadFile(filepath.Join(*dir, stateFileName))
		_ = os.WriteFile(filepath.Join(*dir, stateFileName), append(bytes.TrimSuffix(state, []byte("}")), `,"kept":true}`...), 0o600)
		_ = lock.Truncate(0)
	case *ephemeral:
		_ = os.RemoveAll(*dir)
	default:
		_ = lock.Truncate(0)
		if behaviour == "slow" {
			// Others see an empty file that is locked.
			time.Sleep(5 * lockPoll)
		}
	}
	return 0
}

// fakeSnapshot writes a file as the real control plane does.
func fakeSnapshot(args []string, behaviour string) int {
	flags := flag.NewFlagSet("snapshot", flag.ExitOnError)
	flags.String("dir", "", "")
	out := flags.String("out", "", "")
	name := flags.String("cluster", "", "")
	_ = flags.Parse(args)
	switch behaviour {
	case "error NoSource":
		fmt.Println(`{"event":"error","reason":"NoSource","message":"it is gone","hint":"start it"}`)
		return 1
	case "disk full":
		fmt.Printf(`{"event":"error","reason":"DiskFull","message":"the disk that holds %s is full","hint":"use OPDOCK_HOME"}`, filepath.Dir(*out))
		return 1
	case "save and hang":
		_ = os.WriteFile(filepath.Join(filepath.Dir(*out), "db"), []byte("secrets"), 0o600)
		fallthrough
	case "meet":
		// All savers wait until the test lets them go on.
		_ = os.WriteFile(filepath.Join(os.Getenv("OPDOCK_TEST_MARKER"), strconv.Itoa(os.Getpid())), nil, 0o600)
		for !exists(filepath.Join(os.Getenv("OPDOCK_TEST_MARKER"), "go")) {
			time.Sleep(time.Millisecond)
		}
	case "die":
		fmt.Fprintln(os.Stderr, "fake control plane: something is wrong")
		return 3
	}
	return map[bool]int{true: 0, false: 1}[writeFakeSnapshot(*out, *name) == nil]
}

func writeFakeSnapshot(path, name string) error {
	content := fmt.Sprintf("%s%d\n"+`{"kubernetes":%q,"cluster":%q,"revision":4711,"objects":12,"created":"2026-05-04T12:00:00Z","size":9}`+"\nsome data",
		snapshotMagic, snapshotFormat, KubernetesVersion, name)
	return os.WriteFile(path, fmt.Appendf([]byte(content), "%x\n", sha256.Sum256([]byte(content))), 0o600)
}

func takeLock(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(dir, lockFileName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lockExclusively(lock, 50*time.Millisecond); err != nil {
		return nil, err
	}
	content := fmt.Sprintf(`{"pid":%d,"started":%q}`, os.Getpid(), time.Now().Format(time.RFC3339))
	if err := lock.Truncate(0); err != nil {
		return nil, err
	}
	_, err = lock.WriteAt([]byte(content), 0)
	return lock, err
}

func writeFakeState(dir string, state savedState) error {
	if old, found, _ := readState(dir); found && state.Port == 0 {
		state.Port = old.Port
	}
	if state.Port == 0 {
		state.Port = 40000
	}
	state.Kubernetes = KubernetesVersion
	content, err := json.Marshal(state)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, stateFileName), content, 0o600); err != nil {
		return err
	}
	if err := writeFakeAuthority(filepath.Join(dir, "pki")); err != nil {
		return err
	}
	return writeFakeKubeconfig(dir, fmt.Sprintf("https://127.0.0.1:%d", state.Port))
}

func writeFakeKubeconfig(dir, server string) error {
	name := "opdock-" + filepath.Base(dir)
	return clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: server}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {Token: "admin"}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	}, filepath.Join(dir, kubeconfigFileName))
}

func writeFakeAuthority(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	ca, err := pki.NewAuthority("fake", time.Now(), 10*365*24*time.Hour)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(dir, "ca.crt"), ca.Certificate, 0o600), os.WriteFile(filepath.Join(dir, "ca.key"), ca.Key, 0o600))
}

// fakeSaver saves a cluster, until it is killed.
func fakeSaver(name, path string) int {
	c, err := Open(name)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	c.binary, _ = os.Executable()
	_, err = c.Save(context.Background(), path)
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// held is what fakeHolder prints.
type held struct {
	Dir       string
	Bystander int
}

// fakeHolder starts a cluster and another child that outlives it, says so, and waits to be killed.
func fakeHolder(name string) int {
	binary, _ := os.Executable()
	c, err := Start(context.Background(), Options{Name: name, Binary: binary})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	bystander := exec.Command(binary, "bystander")
	bystander.Stdin = os.Stdin
	if err := bystander.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	_ = json.NewEncoder(os.Stdout).Encode(held{Dir: c.Dir(), Bystander: bystander.Process.Pid})
	select {}
}

// startHolder returns the running holder and what it holds.
func startHolder(t *testing.T, name string) (*exec.Cmd, held) {
	t.Helper()
	cmd := exec.Command(testBinary(t), "hold", name)
	cmd.Stderr = os.Stderr
	// Never written to: the bystander lives until the test closes it.
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stdin.Close() })
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err != nil {
		t.Fatalf("reading what the holder says: %v", err)
	}
	var h held
	if err := json.Unmarshal(line, &h); err != nil {
		t.Fatal(err)
	}
	return cmd, h
}

func isHeld(t *testing.T, dir string) bool {
	t.Helper()
	who, err := lookAt(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return who.held
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
