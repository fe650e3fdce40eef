// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opdock/opdock/internal/controller"
)

func nothing(string) string { return "" }

func TestFlagsThatAreRight(t *testing.T) {
	watch := func(value string) func(string) string {
		return func(name string) string {
			if name == "WATCH_NAMESPACE" {
				return value
			}
			return ""
		}
	}
	for name, test := range map[string]struct {
		args   []string
		getenv func(string) string
		check  func(*settings) bool
	}{
		"no flags": {check: func(s *settings) bool {
			return len(s.manager.Kinds) == len(controller.Kinds) && s.manager.Namespaces == nil && s.metricsAddress == "0" && s.metricsSecure &&
				s.manager.HealthProbeAddress == "0" && !s.manager.LeaderElection && s.manager.ReconcileTimeout == time.Minute
		}},
		"one kind in any case": {args: []string{"--kinds=AppService"}, check: func(s *settings) bool {
			return slices.Equal(kindNames(s.manager.Kinds), []string{"appservice"})
		}},
		"concurrency by kind": {args: []string{"--concurrency=4,appservice=16"}, check: func(s *settings) bool {
			expected := map[string]int{}
			for _, kind := range kindNames(controller.Kinds) {
				expected[kind] = 4
			}
			expected["appservice"] = 16
			return maps.Equal(s.manager.Concurrency, expected)
		}},
		"namespaces": {args: []string{"--namespaces=a,b,"}, getenv: watch("c"), check: func(s *settings) bool {
			return slices.Equal(s.manager.Namespaces, []string{"a", "b"})
		}},
		"namespaces of the environment": {getenv: watch("a,b"), check: func(s *settings) bool {
			return slices.Equal(s.manager.Namespaces, []string{"a", "b"})
		}},
		"all namespaces in spite of the environment": {args: []string{"--namespaces="}, getenv: watch("a"), check: func(s *settings) bool {
			return len(s.manager.Namespaces) == 0
		}},
		"servers": {args: []string{"--metrics-bind-address=:8443", "--metrics-secure=false", "--health-probe-bind-address=127.0.0.1:8081"},
			check: func(s *settings) bool {
				options := metricsOptions(s)
				return options.BindAddress == ":8443" && options.FilterProvider == nil && s.manager.HealthProbeAddress == "127.0.0.1:8081"
			}},
		"why, on this machine": {args: []string{"--why-bind-address=[::1]:8082"}, check: func(s *settings) bool { return s.whyAddress == "[::1]:8082" }},
		"profiles, on this machine": {args: []string{"--pprof-bind-address=127.0.0.1:8083"}, check: func(s *settings) bool {
			return s.manager.ProfileAddress == "127.0.0.1:8083"
		}},
		"protected metrics": {args: []string{"--metrics-bind-address=:8443"}, check: func(s *settings) bool {
			options := metricsOptions(s)
			return options.SecureServing && options.FilterProvider != nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			getenv := test.getenv
			if getenv == nil {
				getenv = nothing
			}
			var errOut strings.Builder
			s, err := parse(test.args, getenv, &errOut)
			if err != nil {
				t.Fatal(err)
			}
			if !test.check(s) {
				t.Errorf("the settings are %+v", s)
			}
		})
	}
}

func TestFlagsThatAreWrong(t *testing.T) {
	for args, expected := range map[string]string{
		"--kinds=toaster":                   `kind "toaster" does not exist; choose from appservice`,
		"--kinds=":                          "name at least one kind",
		"--concurrency=many":                `"many" is not a number above 0`,
		"--concurrency=appservice=0":        `"0" is not a number above 0`,
		"--concurrency=toaster=1":           `kind "toaster" does not exist`,
		"--namespaces=Not_A_Name":           `"Not_A_Name" is not the name of a namespace`,
		"--reconcile-timeout=-1s":           "it must be greater than 0",
		"--graceful-shutdown=0s":            "it must be greater than 0",
		"--reconcile-timeout=soon":          "parse error",
		"--metrics-bind-address=8443":       "use host:port, :port or 0",
		"--health-probe-bind-address=later": "use host:port, :port or 0",
		"--why-bind-address=:8082":          "must be a loopback address",
		"--why-bind-address=0.0.0.0:8082":   "must be a loopback address",
		"--why-bind-address=10.1.2.3:8082":  "must be a loopback address",
		"--why-bind-address=8082":           "use host:port, :port or 0",
		"--pprof-bind-address=:8083":        "must be a loopback address",
		"--pprof-bind-address=8083":         "use host:port, :port or 0",
		"--leader-elect=perhaps":            "invalid boolean value",
		"--no-such-flag":                    "flag provided but not defined",
		"serve":                             `unexpected argument "serve"`,
	} {
		t.Run(args, func(t *testing.T) {
			var out, errOut strings.Builder
			code := Run(t.Context(), []string{args}, nothing, &out, &errOut)
			if code != exitUsage || !strings.Contains(errOut.String(), expected) {
				t.Errorf("exit code %d, and without %q:\n%s", code, expected, &errOut)
			}
			if out.Len() > 0 {
				t.Errorf("it printed %s", &out)
			}
		})
	}
}

func TestHelpAndVersionAreNoErrors(t *testing.T) {
	var out, errOut strings.Builder
	if code := Run(t.Context(), []string{"--help"}, nothing, &out, &errOut); code != exitOK || !strings.Contains(errOut.String(), "-leader-elect") {
		t.Errorf("exit code %d:\n%s", code, &errOut)
	}
	if code := Run(t.Context(), []string{"--version"}, nothing, &out, &errOut); code != exitOK || !strings.HasPrefix(out.String(), "opdock-manager ") {
		t.Errorf("exit code %d: %q", code, &out)
	}
}
