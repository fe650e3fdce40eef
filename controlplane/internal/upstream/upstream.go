// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package upstream makes this binary behave as the upstream programs whose
// names it is called by. Test suites written for envtest find `etcd`,
// `kube-apiserver` and `kubectl` where they expect them, and `etcd` and
// `kube-apiserver` end when the test process that started them does, even if
// that process had no time to stop them.
package upstream

import (
	"context"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // kubectl logs in where users do
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/opdock/opdock/controlplane/internal/early"
)

// Kubectl runs kubectl with the arguments of this process.
func Kubectl(args []string) int {
	// What kubectl logs while it builds its commands obeys -v too.
	_, _ = logs.GlogSetter(kubectl.GetLogVerbosity(args))
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err) // prints as kubectl does, and exits
		return 1
	}
	return 0
}

// Etcd runs etcd with the arguments of this process.
func Etcd(args []string) int {
	go func() {
		waitForOrphanhood(context.Background())
		_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
	}()
	early.ResumeGarbageCollection()
	etcdmain.Main(withElectionDefaults(args))
	return 0
}

// withElectionDefaults shortens the wait of a lone member for its own election,
// which is most of etcd's start-up, unless the caller has chosen otherwise.
func withElectionDefaults(args []string) []string {
	for _, arg := range args {
		for _, chosen := range []string{"heartbeat-interval", "election-timeout", "config-file", "version", "help"} {
			if strings.HasPrefix(strings.TrimLeft(arg, "-"), chosen) {
				return args
			}
		}
	}
	if len(args) > 1 && !strings.HasPrefix(args[1], "-") {
		return args // gateway, grpc-proxy
	}
	return append(slices.Clone(args), "--heartbeat-interval=5", "--election-timeout=50")
}

// waitForOrphanhood returns when the process that started this one is gone.
// The kernel only changes the parent, so this has to poll.
func waitForOrphanhood(ctx context.Context) {
	parent := os.Getppid()
	ticker := time.NewTicker(500 * time.Millisecond)
	defer ticker.Stop()
	for os.Getppid() == parent {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
