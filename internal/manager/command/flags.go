// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap/zapcore"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/opdock/opdock/internal/controller"
	"github.com/opdock/opdock/internal/loopback"
	"github.com/opdock/opdock/internal/manager"
)

// settings is what the flags say.
type settings struct {
	manager        manager.Options
	zap            zap.Options
	metricsAddress string
	metricsSecure  bool
	metricsCertDir string
	whyAddress     string
	traces         traceProtocol
	showVersion    bool
}

// off is how a server is turned off, as everywhere in controller-runtime.
const off = "0"

func parse(args []string, getenv func(string) string, errOut io.Writer) (*settings, error) {
	s := &settings{}
	o := &s.manager
	flags := flag.NewFlagSet("manager", flag.ContinueOnError)
	// Errors are printed by the caller, together with all others.
	flags.SetOutput(io.Discard)
	config.RegisterFlags(flags)
	s.zap.TimeEncoder = zapcore.RFC3339TimeEncoder
	s.zap.BindFlags(flags)

	flags.BoolVar(&s.showVersion, "version", false, "Print the version and exit.")
	flags.Func("kinds", "`Kinds` to run controllers for, separated by commas, from "+strings.Join(kindNames(controller.Kinds), ", ")+". Default: all.",
		func(value string) (err error) { o.Kinds, err = parseKinds(value); return err })
	flags.Func("namespaces", "`Namespaces` to watch, separated by commas. Default: $WATCH_NAMESPACE, or else all.",
		func(value string) (err error) { o.Namespaces, err = parseNamespaces(value); return err })
	flags.Func("concurrency", "How many objects a controller reconciles at the same time, for all kinds or by kind: `number`, or appservice=8,robot=4. Default: 8.",
		func(value string) (err error) { o.Concurrency, err = parseConcurrency(value); return err })
	flags.DurationVar(&o.ReconcileTimeout, "reconcile-timeout", time.Minute, "The longest time that one reconcile may take.")
	flags.DurationVar(&o.GracefulShutdown, "graceful-shutdown", 20*time.Second, "How long to wait at shutdown for running reconciles.")
	flags.StringVar(&s.metricsAddress, "metrics-bind-address", off, "`Address` of the metrics, such as :8443; 0 turns them off.")
	flags.BoolVar(&s.metricsSecure, "metrics-secure", true,
		"Serve metrics over HTTPS, and only to clients that may get the URL /metrics.")
	flags.StringVar(&s.metricsCertDir, "metrics-cert-dir", "", "`Directory` with tls.crt and tls.key for the metrics. Without these files, the manager creates a self-signed certificate when it starts.")
	flags.StringVar(&o.HealthProbeAddress, "health-probe-bind-address", off, "`Address` of healthz and readyz, such as :8081; 0 turns them off.")
	flags.StringVar(&s.whyAddress, "why-bind-address", off,
		"Loopback `address` that serves why objects are reconciled, such as 127.0.0.1:8082; 0 turns recording off.")
	flags.StringVar(&o.ProfileAddress, "pprof-bind-address", off, "Loopback `address` of the profiles, such as 127.0.0.1:8083; 0 turns them off.")
	flags.BoolVar(&o.LeaderElection, "leader-elect", false, "Elect a leader, so only one manager is active at a time.")
	flags.StringVar(&o.LeaderElectionNamespace, "leader-election-namespace", "", "`Namespace` of the lease. Default: the namespace of the pod.")

	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			flags.SetOutput(errOut)
			fmt.Fprintf(errOut, "The controllers of the fleet. Flags:\n")
			flags.PrintDefaults()
		}
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if watch := getenv("WATCH_NAMESPACE"); o.Namespaces == nil && watch != "" {
		namespaces, err := parseNamespaces(watch)
		if err != nil {
			return nil, fmt.Errorf("invalid WATCH_NAMESPACE %q: %w", watch, err)
		}
		o.Namespaces = namespaces
	}
	if len(o.Kinds) == 0 {
		o.Kinds = controller.Kinds
	}
	var err error
	if s.traces, err = tracesFrom(getenv); err != nil {
		return nil, err
	}
	return s, s.check()
}

// check finds what each flag for itself cannot.
func (s *settings) check() error {
	for name, value := range map[string]time.Duration{"reconcile-timeout": s.manager.ReconcileTimeout, "graceful-shutdown": s.manager.GracefulShutdown} {
		if value <= 0 {
			return fmt.Errorf("invalid value %q for flag -%s: it must be greater than 0", value, name)
		}
	}
	for name, value := range map[string]string{
		"metrics-bind-address": s.metricsAddress, "health-probe-bind-address": s.manager.HealthProbeAddress, "why-bind-address": s.whyAddress,
		"pprof-bind-address": s.manager.ProfileAddress,
	} {
		if _, _, err := net.SplitHostPort(value); err != nil && value != off {
			return fmt.Errorf("invalid value %q for flag -%s: use host:port, :port or 0", value, name)
		}
	}
	if s.whyAddress != off && !loopback.IsHost(s.whyAddress) {
		return fmt.Errorf("invalid value %q for flag -why-bind-address: it exposes the content of objects, so it must be a loopback address such as 127.0.0.1:8082; use kubectl port-forward to reach it", s.whyAddress)
	}
	if address := s.manager.ProfileAddress; address != off && !loopback.IsHost(address) {
		return fmt.Errorf("invalid value %q for flag -pprof-bind-address: profiles are not protected, so it must be a loopback address such as 127.0.0.1:8083; use kubectl port-forward to reach it", address)
	}
	return nil
}

func parseKinds(value string) ([]controller.Kind, error) {
	var kinds []controller.Kind
	for _, name := range split(value) {
		kind, err := kindCalled(name)
		if err != nil {
			return nil, err
		}
		kinds = append(kinds, kind)
	}
	if len(kinds) == 0 {
		return nil, errors.New("name at least one kind")
	}
	return kinds, nil
}

func kindCalled(name string) (controller.Kind, error) {
	index := slices.IndexFunc(controller.Kinds, func(kind controller.Kind) bool { return strings.EqualFold(kind.Kind, name) })
	if index < 0 {
		return controller.Kind{}, fmt.Errorf("kind %q does not exist; choose from %s", name, strings.Join(kindNames(controller.Kinds), ", "))
	}
	return controller.Kinds[index], nil
}

func kindNames(kinds []controller.Kind) []string {
	names := make([]string, len(kinds))
	for i, kind := range kinds {
		names[i] = strings.ToLower(kind.Kind)
	}
	return names
}

func parseNamespaces(value string) ([]string, error) {
	namespaces := split(value)
	for _, namespace := range namespaces {
		if problems := content.IsDNS1123Label(namespace); len(problems) > 0 {
			return nil, fmt.Errorf("%q is not the name of a namespace: %s", namespace, strings.Join(problems, "; "))
		}
	}
	return namespaces, nil
}

func parseConcurrency(value string) (map[string]int, error) {
	concurrency := map[string]int{}
	for _, part := range split(value) {
		name, number, found := strings.Cut(part, "=")
		if !found {
			name, number = "", part
		}
		count, err := strconv.Atoi(number)
		if err != nil || count < 1 {
			return nil, fmt.Errorf("%q is not a number above 0", number)
		}
		kinds := controller.Kinds
		if found {
			kind, err := kindCalled(name)
			if err != nil {
				return nil, err
			}
			kinds = []controller.Kind{kind}
		}
		for _, kind := range kindNames(kinds) {
			concurrency[kind] = count
		}
	}
	return concurrency, nil
}

// split leaves out what is empty, such as what follows a comma at the end.
func split(value string) []string {
	return slices.DeleteFunc(strings.Split(value, ","), func(part string) bool { return strings.TrimSpace(part) == "" })
}
