// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cli assembles the opdock command. The verbs are in separate packages, grouped by
// topic: clustercmd, projectcmd, devcmd, rbaccmd, fleetcmd, whycmd, tracecmd and experimentcmd.
// Shared code is in cmdutil, and code for tests of verbs in clitest. These packages contain
// only flags and texts; the logic is in packages outside of cli.
package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/opdock/opdock/internal/cli/clustercmd"
	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/cli/devcmd"
	"github.com/opdock/opdock/internal/cli/experimentcmd"
	"github.com/opdock/opdock/internal/cli/fleetcmd"
	"github.com/opdock/opdock/internal/cli/projectcmd"
	"github.com/opdock/opdock/internal/cli/provecmd"
	"github.com/opdock/opdock/internal/cli/rbaccmd"
	"github.com/opdock/opdock/internal/cli/tracecmd"
	"github.com/opdock/opdock/internal/cli/whycmd"
)

// withVerbs returns the command with all its verbs.
func withVerbs(a *cmdutil.App) *cobra.Command {
	root := a.NewRoot()
	root.Version = ownVersion()
	root.SetVersionTemplate("opdock {{.Version}}\n")
	root.Flags().Bool("version", false, "print the version of opdock; \"opdock version\" prints more")
	cmdutil.AddVerbs(root, cmdutil.GroupCluster, clustercmd.NewUp(a), clustercmd.NewDown(a), clustercmd.NewStatus(a),
		clustercmd.NewFork(a), clustercmd.NewSnapshot(a), clustercmd.NewImport(a))
	cmdutil.AddVerbs(root, cmdutil.GroupUse, fleetcmd.NewRun(a), clustercmd.NewKubectl(a), clustercmd.NewKubeconfig(a),
		clustercmd.NewAssets(a))
	cmdutil.AddVerbs(root, cmdutil.GroupUse, whycmd.NewWhy(a), tracecmd.NewTrace(a), experimentcmd.NewExperiment(a))
	cmdutil.AddVerbs(root, cmdutil.GroupCode, projectcmd.NewInit(a), projectcmd.NewCreate(a), projectcmd.NewDelete(a),
		projectcmd.NewGenerate(a), devcmd.NewDev(a), rbaccmd.NewRBAC(a), provecmd.NewProve(a))
	cmdutil.AddVerbs(root, cmdutil.GroupCode, projectcmd.NewInstall(a), projectcmd.NewUninstall(a), projectcmd.NewDeploy(a),
		projectcmd.NewUndeploy(a), projectcmd.NewBuild(a))
	cmdutil.AddVerbs(root, "", newVersion(a), newCompletion(), clustercmd.NewBuildControlPlane(a))
	return root
}

// Run runs one verb and returns the exit code.
func Run(ctx context.Context, a *cmdutil.App, args []string) int {
	return a.Execute(ctx, withVerbs(a), args)
}
