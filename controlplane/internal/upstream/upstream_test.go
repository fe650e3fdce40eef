// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"errors"
	"slices"
	"testing"

	"github.com/spf13/pflag"
)

func TestElectionDefaults(t *testing.T) {
	added := []string{"--heartbeat-interval=5", "--election-timeout=50"}
	for name, test := range map[string]struct {
		args []string
		adds bool
	}{
		"as envtest calls it":   {args: []string{"etcd", "--data-dir=/x", "--unsafe-no-fsync=true"}, adds: true},
		"without arguments":     {args: []string{"etcd"}, adds: true},
		"election chosen":       {args: []string{"etcd", "--election-timeout=1000"}},
		"heartbeat chosen":      {args: []string{"etcd", "-heartbeat-interval", "100"}},
		"configuration in file": {args: []string{"etcd", "--config-file", "x.yaml"}},
		"version":               {args: []string{"etcd", "--version"}},
		"a subcommand":          {args: []string{"etcd", "grpc-proxy", "start"}},
	} {
		t.Run(name, func(t *testing.T) {
			want := test.args
			if test.adds {
				want = append(slices.Clone(want), added...)
			}
			if got := withElectionDefaults(test.args); !slices.Equal(got, want) {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestOptionsAreUpstreams(t *testing.T) {
	opts, err := parseOptions([]string{"kube-apiserver", "--etcd-servers=http://127.0.0.1:1", "--secure-port=6443", "--authorization-mode=RBAC"})
	if err != nil {
		t.Fatal(err)
	}
	if opts.SecureServing.BindPort != 6443 || !slices.Equal(opts.Authorization.Modes, []string{"RBAC"}) {
		t.Errorf("port %d, modes %v", opts.SecureServing.BindPort, opts.Authorization.Modes)
	}
	for name, args := range map[string][]string{
		"unknown flag":  {"kube-apiserver", "--no-such-flag"},
		"stray words":   {"kube-apiserver", "word"},
		"wrong feature": {"kube-apiserver", "--feature-gates=NoSuchFeature=true"},
	} {
		if _, err := parseOptions(args); err == nil || errors.Is(err, pflag.ErrHelp) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
