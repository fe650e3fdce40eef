// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// upstream holds the paths of the programs that Opdock is compared with.
type upstream struct {
	dir     string // holds etcd and kube-apiserver, as envtest requires
	kwokctl string
}

func (u upstream) path(name string) string { return filepath.Join(u.dir, name) }

// buildUpstream builds the stand-alone programs from the same modules as the control plane, and kwokctl from the
// tools module.
func buildUpstream(ctx context.Context) (upstream, error) {
	dir, err := filepath.Abs("bin/bench")
	if err != nil {
		return upstream{}, err
	}
	u := upstream{dir: dir, kwokctl: filepath.Join(dir, "kwokctl")}
	for _, program := range []struct{ module, pkg, name string }{
		{"controlplane", "go.etcd.io/etcd/server/v3", "etcd"},
		{"controlplane", "k8s.io/kubernetes/cmd/kube-apiserver", "kube-apiserver"},
		{"controlplane", "k8s.io/kubernetes/cmd/kube-controller-manager", "kube-controller-manager"},
		{"controlplane", "k8s.io/kubernetes/cmd/kube-scheduler", "kube-scheduler"},
		{"tools", "sigs.k8s.io/kwok/cmd/kwok", "kwok"},
		{"tools", "sigs.k8s.io/kwok/cmd/kwokctl", "kwokctl"},
	} {
		say("  %s", program.name)
		build := exec.CommandContext(ctx, "go", "build", "-C", program.module, "-ldflags=-s -w", "-o", u.path(program.name), program.pkg)
		build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
		if out, err := build.CombinedOutput(); err != nil {
			return upstream{}, fmt.Errorf("building %s: %w\n%s", program.name, err, out)
		}
	}
	return u, nil
}
