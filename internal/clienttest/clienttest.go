// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package clienttest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/testenv"
)

const (
	// starting is how long a control plane that is built already may take on a busy machine.
	starting = 2 * time.Minute

	// establishing is how long the API server may take to serve new kinds.
	establishing = 30 * time.Second
)

// Run is the body of a TestMain: it starts a control plane, installs the CustomResourceDefinitions of a folder, lets
// $KUBECONFIG name it, and runs the tests. Without a built control plane it skips the examples, as NeedsServer skips
// tests, rather than compiling Kubernetes in the middle of a test run.
func Run(m *testing.M, crdFolder string) int {
	flag.Parse()
	if os.Getenv("OPDOCK_CONTROLPLANE") == "" {
		fmt.Fprintln(os.Stderr, "skipping examples:", noServer)
		if err := skipExamples(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}
	code, err := runWithServer(m, crdFolder)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

const noServer = "OPDOCK_CONTROLPLANE does not name a control plane; make test builds one and sets it"

// NeedsServer skips a test if Run has found no control plane.
func NeedsServer(t *testing.T) {
	t.Helper()
	testenv.ControlPlane(t)
}

// skipExamples does it with the flag of go test, because nothing else can skip an example.
func skipExamples() error {
	skip := "^Example"
	if others := flag.Lookup("test.skip").Value.String(); others != "" {
		skip = others + "|" + skip
	}
	return flag.Set("test.skip", skip)
}

func runWithServer(m *testing.M, crdFolder string) (code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), starting)
	defer cancel()
	c, err := cluster.Start(ctx, cluster.Options{})
	if err != nil {
		return 0, fmt.Errorf("starting the control plane for the examples: %w", err)
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	_, err = envtest.InstallCRDs(c.Config(), envtest.CRDInstallOptions{
		Paths:              []string{crdFolder},
		ErrorIfPathMissing: true,
		MaxTime:            establishing,
	})
	if err != nil {
		return 0, fmt.Errorf("installing the kinds: %w", err)
	}
	if err := os.Setenv("KUBECONFIG", c.Kubeconfig()); err != nil {
		return 0, err
	}
	return m.Run(), nil
}
