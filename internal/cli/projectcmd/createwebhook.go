// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package projectcmd

import (
	"github.com/spf13/cobra"

	"github.com/opdock/opdock/scaffold"
)

func (a verbs) newCreateWebhook() *cobra.Command {
	var (
		options scaffold.WebhookOptions
		name    apiName
		flags   scaffoldFlags
	)
	cmd := &cobra.Command{
		Use:   "webhook --group GROUP --version VERSION --kind KIND [--defaulting] [--programmatic-validation] [--conversion] [FLAG]...",
		Short: "Add webhooks for a kind to a project",
		Long: `Writes webhooks with tests, makes them part of main, and adds the manifests that deploy them: a service, and a
certificate from cert-manager.

--conversion makes VERSION the one that the others are converted to and from. It copies what has the same name in
both, and is the place for what has not.`,
		Example: `  opdock create webhook --group ship --version v1 --kind Frigate --defaulting --programmatic-validation
  opdock create api --group ship --version v2 --kind Frigate          # a second version, to convert
  opdock create webhook --group ship --version v1 --kind Frigate --conversion --spoke v2`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := a.onKind(cmd, &name, flags, "Created webhooks for", func() (*scaffold.Plan, error) {
				options.Dir, options.Group, options.Version, options.Kind = flags.dir, name.group, name.version, name.kind
				return scaffold.CreateWebhook(options)
			})
			if err != nil {
				return err
			}
			a.suggest(flags, "run it, and say in internal/webhook what they do: "+a.inProject(flags, "dev", "--samples"))
			return nil
		},
	}
	a.addKindFlags(cmd, &name, &flags)
	cmd.Flags().BoolVar(&options.Defaulting, "defaulting", false, "a webhook that fills in what a user has not said")
	cmd.Flags().BoolVar(&options.Validation, "programmatic-validation", false, "a webhook that refuses what cannot work")
	cmd.Flags().BoolVar(&options.Conversion, "conversion", false, "a webhook that converts between versions")
	cmd.Flags().StringSliceVar(&options.Spokes, "spoke", nil, "versions to convert to and from VERSION (default: all others)")
	return cmd
}
