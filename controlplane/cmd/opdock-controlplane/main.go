// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Command opdock-controlplane is a Kubernetes control plane in one process. opdock and the Go
// package cluster start it; to run it by hand, use `serve`. Under the name of an upstream
// program, it acts as that program.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	etcdversion "go.etcd.io/etcd/api/v3/version"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/version"
	"k8s.io/klog/v2"

	"github.com/opdock/opdock/controlplane/internal/emulation"
	"github.com/opdock/opdock/controlplane/internal/serve"
	"github.com/opdock/opdock/controlplane/internal/state"
	"github.com/opdock/opdock/controlplane/internal/upstream"
)

const usage = `opdock-controlplane is a Kubernetes control plane in one process.

Usage:
  opdock-controlplane serve --dir DIR [flags]           run a cluster whose state is in DIR
  opdock-controlplane snapshot --dir DIR --out FILE     save the objects of a cluster that runs
  opdock-controlplane version                           print the versions of its parts as JSON

Linked as etcd, kube-apiserver or kubectl it is that program.
`

func main() { os.Exit(run(time.Now())) }

func run(started time.Time) int {
	switch filepath.Base(os.Args[0]) {
	case "etcd":
		return upstream.Etcd(os.Args)
	case "kube-apiserver":
		return upstream.APIServer(os.Args)
	case "kubectl":
		return upstream.Kubectl(os.Args)
	}

	verb := ""
	if len(os.Args) > 1 {
		verb = os.Args[1]
	}
	switch verb {
	case "serve":
		return runServe(started, os.Args[2:])
	case "snapshot":
		return runSnapshot(started, os.Args[2:])
	case "version":
		return printVersion()
	case "", "help", "-h", "--help":
		fmt.Print(usage)
		return 0
	default:
		fmt.Fprintf(os.Stderr, "opdock-controlplane: unknown command %q\n\n%s", verb, usage)
		return 2
	}
}

func printVersion() int {
	data, err := json.Marshal(map[string]any{
		"kubernetes": version.Get().GitVersion,
		"etcd":       etcdversion.Version,
		"kwok":       moduleVersion("sigs.k8s.io/kwok"),
		"emulates":   emulation.Available(),
		"state":      state.Format,
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "opdock-controlplane:", err)
		return 1
	}
	fmt.Println(string(data))
	return 0
}

// moduleVersion is the version of a module that this binary was built from.
func moduleVersion(path string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, module := range info.Deps {
		if module.Path == path {
			return module.Version
		}
	}
	return ""
}

func runServe(started time.Time, args []string) int {
	flags := pflag.NewFlagSet("opdock-controlplane serve", pflag.ContinueOnError)
	o := serve.Options{Kubernetes: version.Get().GitVersion}
	flags.StringVar(&o.Dir, "dir", "", "state folder of the cluster (required)")
	flags.IntVar(&o.Nodes, "nodes", 0, "number of simulated nodes; 0: 1 for a new cluster, unchanged for an existing one")
	flags.IntVar(&o.Port, "port", 0, "port on 127.0.0.1; 0: chosen by the system once, then kept")
	flags.BoolVar(&o.Ephemeral, "ephemeral", false, "remove the state when the cluster stops")
	flags.BoolVar(&o.Durable, "durable", false, "sync each write to disk, to survive a power failure")
	flags.Float32Var(&o.ControllerQPS, "controller-qps", 0, "limit each controller to this many requests a second; 0: no limit")
	flags.StringVar(&o.From, "from", "", "start with the objects of this snapshot file, or of the running cluster whose state is in this folder")
	flags.BoolVar(&o.Replace, "replace", false, "allow --from to replace the objects of an existing cluster")
	flags.DurationVar(&o.History, "history", 0, "keep old revisions readable for at least this long; 0: 5m, like kube-apiserver")
	flags.StringVar(&o.Emulated, "kubernetes", "", "version to emulate, such as 1.34; empty: unchanged, or its own for a new cluster")
	plugins := flags.StringSlice("admission-plugins", nil, "admission plugins to enable beside the default ones (default: unchanged)")
	reportFD := flags.Int("report-fd", -1, "write JSON lines about the start to this file descriptor")
	lifelineFD := flags.Int("lifeline-fd", -1, "stop when the other end of this pipe is closed, unless another process uses the cluster")
	verbosity := flags.IntP("v", "v", 0, "log level")
	switch err := flags.Parse(args); {
	case errors.Is(err, pflag.ErrHelp):
		return 0
	case err == nil && o.Dir == "":
		err = errors.New("--dir is required")
		fallthrough
	case err != nil:
		fmt.Fprintln(os.Stderr, "opdock-controlplane serve:", err)
		return 2
	}

	if flags.Changed("admission-plugins") {
		o.AdmissionPlugins = append([]string{}, *plugins...)
	}
	o.Report = serve.NewReporter(nil, started)
	if report := descriptor(*reportFD, "report"); report != nil {
		o.Report = serve.NewReporter(report, started)
	}
	if err := configure(*verbosity); err != nil {
		o.Report.Error(err)
		return 1
	}
	// From here on, only the owner can access new files and sockets.
	syscall.Umask(0o077)
	// The reader of the log may end before the control plane has stopped.
	signal.Ignore(syscall.SIGPIPE)
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	go stopOnSignal(cancel)
	if lifeline := descriptor(*lifelineFD, "lifeline"); lifeline != nil {
		go func() {
			_, _ = io.Copy(io.Discard, lifeline)
			if state.InUse(o.Dir) {
				klog.InfoS("Running on: the process that started this one is gone, but another one uses the cluster")
				return
			}
			klog.InfoS("Stopping: the process that started this one is gone")
			cancel(nil)
		}()
	}

	err := serve.Run(ctx, o)
	if err != nil {
		o.Report.Error(err)
		fmt.Fprintln(os.Stderr, "opdock-controlplane:", err)
		return 1
	}
	return 0
}

// runSnapshot reports errors on standard output, one JSON object, and is silent if it succeeds.
func runSnapshot(started time.Time, args []string) int {
	flags := pflag.NewFlagSet("opdock-controlplane snapshot", pflag.ContinueOnError)
	var o serve.SaveOptions
	flags.StringVar(&o.Dir, "dir", "", "state folder of the running cluster (required)")
	flags.StringVar(&o.Out, "out", "", "the file to write (required)")
	flags.StringVar(&o.Cluster, "cluster", "", "name of the cluster in the snapshot")
	switch err := flags.Parse(args); {
	case errors.Is(err, pflag.ErrHelp):
		return 0
	case err == nil && (o.Dir == "" || o.Out == ""):
		err = errors.New("--dir and --out are required")
		fallthrough
	case err != nil:
		fmt.Fprintln(os.Stderr, "opdock-controlplane snapshot:", err)
		return 2
	}
	syscall.Umask(0o077)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve.Save(ctx, o); err != nil {
		serve.NewReporter(os.Stdout, started).Error(err)
		return 1
	}
	return 0
}

// configure sets what all parts of the process share.
func configure(verbosity int) error {
	var level klog.Level
	if err := level.Set(strconv.Itoa(verbosity)); err != nil {
		return fmt.Errorf("log level: %w", err)
	}
	// Components warn themselves about deprecated kinds that they watch.
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	return nil
}

// stopOnSignal stops cleanly at the first signal. Another Ctrl-C then ends the process at once, for people who run it by
// hand. Another SIGTERM does not: several programs may stop the same cluster, and all of them wait for the clean stop.
// SIGUSR1 stops as well, but keeps the state of an ephemeral cluster for the next start.
func stopOnSignal(cancel context.CancelCauseFunc) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGUSR1)
	first := <-signals
	klog.InfoS("Stopping", "signal", first.String())
	if first == syscall.SIGUSR1 {
		cancel(serve.ErrRestart)
	} else {
		cancel(nil)
	}
	for next := range signals {
		if next == os.Interrupt {
			os.Exit(1)
		}
	}
}

// descriptor opens an inherited file descriptor; nil if there is none.
func descriptor(fd int, name string) *os.File {
	if fd < 0 {
		return nil
	}
	return os.NewFile(uintptr(fd), name)
}
