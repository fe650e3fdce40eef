// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"slices"

	"github.com/opdock/opdock/internal/projectfile"
)

// removeWebhooks takes the webhooks of a kind out again.
func (r *removal) removeWebhooks(resource *projectfile.Resource) error {
	if resource.Webhooks == nil {
		return nil
	}
	api, webhooks := r.api(resource), *resource.Webhooks
	w := r.webhook(api, webhooks)
	files, err := r.webhookFiles(api, webhooks)
	if err != nil {
		return err
	}
	if err := r.removeFiles(files); err != nil {
		return err
	}
	resource.Webhooks = nil
	if w.Alias, err = r.nameInMain(webhookImport(w)); err != nil {
		return err
	}
	if err := r.cutStatement(mainFile, w.Alias+".Setup"+api.Kind+"WebhookWithManager("); err != nil {
		return err
	}
	if err := r.cutUnusedImports(mainFile, webhookImport(w)); err != nil {
		return err
	}
	if webhooks.Conversion {
		if err := r.cut(crdKustomization, conversionFragment(r.conversionPatch(api))); err != nil {
			return err
		}
	}
	return r.disableWebhooks(api, w)
}

// disableWebhooks removes files and lines that no webhook needs any more.
func (r *removal) disableWebhooks(api API, w Webhook) error {
	left := func(has func(*projectfile.Webhooks) bool) bool {
		return slices.ContainsFunc(r.file.Resources, func(other projectfile.Resource) bool { return other.Webhooks != nil && has(other.Webhooks) })
	}
	if !left(func(o *projectfile.Webhooks) bool { return o.Conversion }) {
		if _, err := r.replace(crdKustomization, configurationsOn, configurationsOff); err != nil {
			return err
		}
	}
	if !left(func(o *projectfile.Webhooks) bool { return o.Defaulting || o.Validation }) {
		if err := r.remove(webhookManifests); err != nil {
			return err
		}
		if _, err := r.replace(webhookKustomization, manifestsLine, ""); err != nil {
			return err
		}
	}
	if left(func(*projectfile.Webhooks) bool { return true }) {
		return nil
	}
	for _, one := range append(slices.Clone(webhookSwitches), replacementsSwitch) {
		if _, err := r.replace(defaultKustomation, one[1], one[0]); err != nil {
			return err
		}
	}
	data := view{Project: r.Project, API: api, Webhook: w}
	foreign, err := r.replace(defaultKustomation, kubebuilderReplacementsSwitch[1], kubebuilderReplacementsSwitch[0])
	if err != nil {
		return err
	}
	if foreign { // our projects have that file from the beginning
		if err := r.removeTemplate(defaultFolder+replacementsFile, replacementsTemplate, data); err != nil {
			return err
		}
	}
	if err := r.cut(policyKustomization, policyLine); err != nil {
		return err
	}
	for name, template := range sharedWebhookFiles {
		if err := r.removeTemplate(name, template, data); err != nil {
			return err
		}
	}
	return nil
}
