// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/target"
)

// versionReport is what opdock version -o json prints.
type versionReport struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	// Binary and ControlPlane are missing as long as no control plane binary was built.
	Binary       string                       `json:"binary,omitempty"`
	ControlPlane *target.ControlPlaneVersions `json:"controlPlane,omitempty"`
}

func newVersion(a *cmdutil.App) *cobra.Command {
	var format cmdutil.OutputFormat
	cmd := &cobra.Command{
		Use:   "version [-o FORMAT]",
		Short: "Print the versions of opdock and the control plane",
		Long: `Prints the version of this program and of the components in the control plane binary that
"opdock up" uses. The binary is not built if it does not exist yet.`,
		Example: `  opdock version
  opdock version -o json`,
		Args: cmdutil.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			report := versionReport{
				Version:  ownVersion(),
				Go:       runtime.Version(),
				Platform: runtime.GOOS + "/" + runtime.GOARCH,
			}
			binary, err := a.Dock.FindBinary()
			var none *cluster.NoBinaryError
			switch {
			case errors.As(err, &none):
			case err != nil:
				return err
			default:
				versions, err := a.Dock.Versions(cmd.Context(), binary)
				if err != nil {
					return err
				}
				report.Binary, report.ControlPlane = binary, &versions
			}
			if format == cmdutil.OutputJSON {
				return a.PrintJSON(report)
			}
			return printVersion(a, report)
		},
	}
	a.AddOutputFlag(cmd, &format)
	return cmd
}

func printVersion(a *cmdutil.App, r versionReport) error {
	table := tabwriter.NewWriter(a.Out, 0, 0, 3, ' ', 0)
	fmt.Fprintf(table, "opdock\t%s (%s, %s)\n", r.Version, r.Go, r.Platform)
	if r.ControlPlane == nil {
		fmt.Fprintf(table, "control plane\tnot built yet (%s builds it)\n", a.Command("up", a.DefaultName()))
	} else {
		fmt.Fprintf(table, "control plane\tKubernetes %s, etcd %s, kwok %s\n",
			r.ControlPlane.Kubernetes, r.ControlPlane.Etcd, r.ControlPlane.Kwok)
		fmt.Fprintf(table, "binary\t%s\n", r.Binary)
	}
	return table.Flush()
}

// ownVersion is the module version that go install recorded, or the commit of a build from a checkout.
func ownVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" && len(setting.Value) >= 12 {
			return "devel-" + setting.Value[:12]
		}
	}
	return "devel"
}
