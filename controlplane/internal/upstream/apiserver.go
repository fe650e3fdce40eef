// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/cli/globalflag"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/version/verflag"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"

	"github.com/opdock/opdock/controlplane/internal/apiserver"
	"github.com/opdock/opdock/controlplane/internal/controllers"
	"github.com/opdock/opdock/controlplane/internal/early"
	"github.com/opdock/opdock/controlplane/internal/serve"
)

// ControllersVariable is the environment variable that, set to 1, turns a lone API server into a whole cluster.
const ControllersVariable = "OPDOCK_CONTROLLERS"

func withControllers() bool { return os.Getenv(ControllersVariable) == "1" }

// APIServer runs kube-apiserver with the arguments of this process.
func APIServer(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		waitForOrphanhood(ctx)
		cancel()
	}()
	err := runAPIServer(ctx, args)
	switch {
	case err == nil, errors.Is(err, pflag.ErrHelp):
		return 0
	default:
		fmt.Fprintln(os.Stderr, "kube-apiserver:", err)
		return 1
	}
}

func runAPIServer(ctx context.Context, args []string) error {
	opts, err := parseOptions(args)
	if err != nil {
		return err
	}
	nodes := 0
	if withControllers() {
		nodes = 1
	}
	api, err := apiserver.New(ctx, apiserver.Options{Run: opts, Nodes: nodes})
	if err != nil {
		return err
	}
	if err := api.Assemble(ctx); err != nil {
		return err
	}
	serving, stopServing := context.WithCancel(context.Background())
	defer stopServing()
	done := make(chan error, 1)
	go func() { done <- api.Run(serving) }()

	// Stopped before it is ready, its own start-up hooks would count as failed.
	waiting, stopWaiting := context.WithCancel(serving)
	go func() { done <- errors.Join(<-done); stopWaiting() }()
	if err := api.WaitReady(waiting); err != nil {
		return fmt.Errorf("the API server ended while starting: %w", <-done)
	}
	api.AfterReady(serving)
	early.ResumeGarbageCollection()

	if withControllers() {
		clients, err := serve.StartClients(serving, api, serve.ClientOptions{
			Nodes: nodes,
			Controllers: controllers.Options{
				// A certificate is its own root, whoever signed it.
				RootCAFile:            opts.SecureServing.ServerCert.CertKey.CertFile,
				ServiceAccountKeyFile: opts.ServiceAccountSigningKeyFile,
			},
		})
		if err != nil {
			return err
		}
		clients.AfterReady()
		defer clients.Stop()
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-done:
		return err
	}
}

// parseOptions reads the flags of kube-apiserver, all of them.
func parseOptions(args []string) (*options.ServerRunOptions, error) {
	opts := options.NewServerRunOptions()
	flags := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	groups := opts.Flags()
	verflag.AddFlags(groups.FlagSet("global"))
	globalflag.AddGlobalFlags(groups.FlagSet("global"), "kube-apiserver", logs.SkipLoggingConfigurationFlags())
	for _, group := range groups.FlagSets {
		flags.AddFlagSet(group)
	}
	if err := flags.Parse(args[1:]); err != nil {
		return nil, err
	}
	if help, err := flags.GetBool("help"); err == nil && help {
		// envtest reads from this which flags there are.
		fmt.Fprint(os.Stdout, "Usage:\n  kube-apiserver [flags]\n")
		cliflag.PrintSections(os.Stdout, groups, 0)
		return nil, pflag.ErrHelp
	}
	verflag.PrintAndExitIfRequested()
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("takes no arguments, got %q", flags.Args())
	}

	registry := opts.GenericServerRunOptions.ComponentGlobalsRegistry
	if err := registry.Set(); err != nil {
		return nil, fmt.Errorf("feature gates: %w", err)
	}
	if err := logsapi.ValidateAndApply(opts.Logs, registry.FeatureGateFor(basecompatibility.DefaultKubeComponent)); err != nil {
		return nil, fmt.Errorf("logging: %w", err)
	}
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	klog.V(1).InfoS("Starting kube-apiserver", "args", args)
	return opts, nil
}
