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
	"time"

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
	"github.com/opdock/opdock/controlplane/internal/emulation"
	"github.com/opdock/opdock/controlplane/internal/fault"
	"github.com/opdock/opdock/controlplane/internal/serve"
)

// ControllersVariable is the environment variable that, set to 1, turns a lone API server into a whole cluster.
const ControllersVariable = "OPDOCK_CONTROLLERS"

// APIServer runs kube-apiserver with the arguments of this process.
func APIServer(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends it at once
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		waitForOrphanhood(ctx)
		cancel()
	}()
	if err := runAPIServer(ctx, args); err != nil && !errors.Is(err, pflag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "kube-apiserver:", err)
		return 1
	}
	return 0
}

func runAPIServer(ctx context.Context, args []string) error {
	opts, err := parseOptions(args)
	if err != nil {
		return err
	}
	o := apiserver.Options{Run: opts, New: true} // test suites start with an empty etcd
	if os.Getenv(ControllersVariable) == "1" {
		o.Cluster, o.Nodes = true, 1
	}
	api, err := apiserver.New(ctx, o)
	if err != nil {
		return err
	}
	if err := api.Assemble(ctx); err != nil {
		return err
	}
	api.Start()
	if err := waitReady(ctx, api); err != nil {
		return err
	}
	background, stopBackground := context.WithCancel(context.Background())
	defer stopBackground()
	api.AfterReady(background)
	early.ResumeGarbageCollection()
	if !o.Cluster {
		return runUntilStopped(ctx, api, nil)
	}

	clients, err := serve.StartClients(background, api, serve.ClientOptions{
		Nodes: o.Nodes,
		Controllers: controllers.Options{
			// A certificate is its own root, even if another CA signed it.
			RootCAFile:            opts.SecureServing.ServerCert.CertKey.CertFile,
			ServiceAccountKeyFile: opts.ServiceAccountSigningKeyFile,
		},
	})
	if err != nil {
		return errors.Join(err, api.Stop())
	}
	clients.AfterReady()
	return runUntilStopped(ctx, api, clients)
}

// readyPatience is how long a server that is asked to stop may still take to
// get ready. Stopped earlier, its own start-up hooks would count as failed.
const readyPatience = 5 * time.Second

func waitReady(ctx context.Context, api *apiserver.Server) error {
	waiting, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() {
		time.AfterFunc(readyPatience, func() { cancel(errors.New("stopped before it was ready")) })
	})()
	go func() {
		select {
		case <-api.Done():
			cancel(api.Err())
		case <-waiting.Done():
		}
	}()
	return api.WaitReady(waiting)
}

// runUntilStopped returns when ctx has ended and everything has stopped in
// order. The clients may be nil.
func runUntilStopped(ctx context.Context, api *apiserver.Server, clients *serve.Clients) error {
	var failed <-chan error
	if clients != nil {
		failed = clients.Err()
	}
	var err error
	select {
	case <-ctx.Done():
	case <-api.Done():
		err = api.Err()
	case err = <-failed:
	}
	if clients != nil {
		clients.Stop()
	}
	if err != nil {
		return errors.Join(err, api.Stop())
	}
	return api.Stop()
}

// setVersion applies the version that the environment selects, unless a flag does, and the feature gates.
func setVersion(flags *pflag.FlagSet) error {
	wanted := ""
	if !flags.Changed("emulated-version") {
		wanted = os.Getenv(emulation.Variable)
	}
	emulated, err := emulation.Normalize(wanted)
	if err != nil {
		var shown *fault.Error
		if errors.As(err, &shown) {
			return fmt.Errorf("%s: %w; %s", emulation.Variable, err, shown.Hint)
		}
		return err
	}
	return emulation.Set(emulated)
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
	if err := setVersion(flags); err != nil {
		return nil, err
	}
	if err := logsapi.ValidateAndApply(opts.Logs, registry.FeatureGateFor(basecompatibility.DefaultKubeComponent)); err != nil {
		return nil, fmt.Errorf("logging: %w", err)
	}
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	klog.V(1).InfoS("Starting kube-apiserver", "args", args)
	return opts, nil
}
