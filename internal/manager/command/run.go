// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package command is the manager as a program: its flags, its logs and its exit codes. It is apart from package manager
// because only the program serves protected metrics and exports traces.
//
// Half of what a Go program has in memory is the program itself. The linker leaves out methods that nothing calls, but only if
// nothing looks them up by name, as text/template does. So nothing here may import text/template or html/template, directly
// or not: this is also why the program is to be built with the tag grpcnotrace, as the image is.
package command

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/opdock/opdock/internal/manager"
)

// BuildTags are the tags to build the program with. Without them it does the same, but needs more memory.
const BuildTags = "grpcnotrace"

// Exit codes.
const (
	exitOK    = 0
	exitError = 1
	// exitUsage is the exit code of Go's flag package.
	exitUsage = 2
)

// Run runs the manager until the context ends, and returns the exit code.
func Run(ctx context.Context, args []string, getenv func(string) string, out, errOut io.Writer) int {
	s, err := parse(args, getenv, errOut)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		fmt.Fprintf(errOut, "manager: %v\nmanager --help lists the flags\n", err)
		return exitUsage
	case s.showVersion:
		fmt.Fprintln(out, versionLine())
		return exitOK
	}
	if err := run(ctx, s, errOut); err != nil {
		// Through the log, which is where people look for the reason of a restart.
		ctrl.Log.Error(err, "The manager ends")
		return exitError
	}
	return exitOK
}

func run(ctx context.Context, s *settings, errOut io.Writer) error {
	logger := zap.New(zap.UseFlagOptions(&s.zap), zap.WriteTo(errOut))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	restConfig, err := config.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the cluster: %w; set --kubeconfig or KUBECONFIG", err)
	}
	s.manager.Logger = logger
	s.manager.Metrics = metricsOptions(s)
	recorder, endRecorder, err := newRecorder(ctx, s, logger)
	if err != nil {
		return err
	}
	defer endRecorder()
	s.manager.Why = recorder
	mgr, err := manager.New(restConfig, s.manager)
	if err != nil {
		return err
	}
	if s.whyAddress != off {
		if err := mgr.Add(&whyServer{address: s.whyAddress, recorder: recorder, log: logger.WithName("why")}); err != nil {
			return fmt.Errorf("adding the endpoint: %w", err)
		}
	}
	logger.Info("The manager starts", "version", version(), "server", restConfig.Host, "kinds", kindNames(s.manager.Kinds), "namespaces", s.manager.Namespaces)
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running the controllers: %w", err)
	}
	return nil
}

// metricsOptions are for those only whom the API server knows and allows to read them, unless they are served without TLS.
func metricsOptions(s *settings) metricsserver.Options {
	options := metricsserver.Options{
		BindAddress: s.metricsAddress, SecureServing: s.metricsSecure, CertDir: certDir(s.metricsCertDir),
		// HTTP/2 can be made to do much work by few requests, and a scrape has no use for it.
		TLSOpts: []func(*tls.Config){func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }},
	}
	if s.metricsSecure {
		options.FilterProvider = protect
	}
	return options
}

// certDir returns the folder if it holds a certificate. The manifests mount an optional Secret there, and
// controller-runtime creates a self-signed certificate only without a folder.
func certDir(folder string) string {
	for _, name := range []string{"tls.crt", "tls.key"} {
		if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
			return ""
		}
	}
	return folder
}
