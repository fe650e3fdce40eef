// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package clustercmd

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/mod/semver"

	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/hint"
)

// NewAssets returns the verb assets.
func NewAssets(app *cmdutil.App) *cobra.Command {
	a := verbs{app}
	return &cobra.Command{
		Use:   "assets",
		Short: "Print a directory to use as KUBEBUILDER_ASSETS for envtest",
		Long: `Prints the path of a directory that contains etcd, kube-apiserver and kubectl. All three are the
control plane binary under another name. Test suites written for controller-runtime's envtest run on
it unmodified, without downloading anything. Set OPDOCK_CONTROLLERS=1 to also give the tests
controllers, a scheduler, garbage collection and nodes. Set OPDOCK_KUBERNETES to a minor version, such as
1.34, to test against that version.

Standard output contains only the path. If the binary has to be built first, the progress of the
build goes to standard error.`,
		Example: `  KUBEBUILDER_ASSETS=$(opdock assets) go test ./...
  OPDOCK_CONTROLLERS=1 KUBEBUILDER_ASSETS=$(opdock assets) go test ./...
  OPDOCK_KUBERNETES=1.34 KUBEBUILDER_ASSETS=$(opdock assets) go test ./...`,
		Args: cmdutil.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			binary, err := a.ControlPlaneBinary(cmd.Context(), false)
			if err != nil {
				return err
			}
			if err := a.checkVersion(cmd.Context(), binary); err != nil {
				return err
			}
			dir, err := a.Dock.Assets(binary)
			if err != nil {
				return err
			}
			fmt.Fprintln(a.Out, dir)
			return nil
		},
	}
}

// checkVersion refuses a version that the control plane does not have. A test suite would only see that the API server does
// not start in time.
func (a verbs) checkVersion(ctx context.Context, binary string) error {
	wanted := a.Getenv(kubernetesVariable)
	if wanted == "" {
		return nil
	}
	versions, err := a.Dock.Versions(ctx, binary)
	if err != nil {
		return err
	}
	minor := strings.TrimPrefix(semver.MajorMinor("v"+strings.TrimPrefix(wanted, "v")), "v")
	if len(versions.Emulates) == 0 || slices.Contains(versions.Emulates, minor) {
		return nil
	}
	return hint.With(fmt.Errorf("%s is %q, which this control plane cannot emulate", kubernetesVariable, wanted),
		"use one of "+strings.Join(versions.Emulates, ", "))
}
