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
		Long: `Writes webhooks with tests, adds them to main, and adds the manifests to deploy them: a Service, and a
certificate issued by cert-manager.

--conversion makes VERSION the hub, which the other versions are converted to and from. The generated
conversion copies fields that have the same name in both versions. Add code there for all other fields.`,
		Example: `  opdock create webhook --group ship --version v1 --kind Frigate --defaulting --programmatic-validation
  opdock create api --group ship --version v2 --kind Frigate          # add a second version
  opdock create webhook --group ship --version v1 --kind Frigate --conversion --spoke v2`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := a.onKind(cmd, &name, flags, "Created webhooks for", func() (*scaffold.Plan, error) {
				options.Dir, options.Group, options.Version, options.Kind = flags.dir, name.group, name.version, name.kind
				return scaffold.CreateWebhook(options)
			})
			if err != nil {
				return err
			}
			a.suggest(flags, "edit internal/webhook, then run it: "+a.inProject(flags, "dev", "--samples"))
			return nil
		},
	}
	a.addKindFlags(cmd, &name, &flags)
	cmd.Flags().BoolVar(&options.Defaulting, "defaulting", false, "create a webhook that sets default values")
	cmd.Flags().BoolVar(&options.Validation, "programmatic-validation", false, "create a webhook that validates objects")
	cmd.Flags().BoolVar(&options.Conversion, "conversion", false, "create a webhook that converts between versions")
	cmd.Flags().StringSliceVar(&options.Spokes, "spoke", nil, "versions to convert to and from VERSION (default: all other versions)")
	return cmd
}
