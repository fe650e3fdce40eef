// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	"errors"
	"path"
	"strings"
)

// sharedWebhookFiles exist as long as any kind has webhooks.
var sharedWebhookFiles = map[string]string{
	"config/webhook/service.yaml":                      "webhook/service.yaml.tmpl",
	"config/webhook/kustomizeconfig.yaml":              "webhook/kustomizeconfig.yaml.tmpl",
	webhookKustomization:                               "webhook/kustomization.yaml.tmpl",
	"config/certmanager/kustomization.yaml":            "webhook/certmanager_kustomization.yaml.tmpl",
	"config/certmanager/issuer.yaml":                   "webhook/issuer.yaml.tmpl",
	"config/certmanager/certificate-webhook.yaml":      "webhook/certificate.yaml.tmpl",
	"config/certmanager/kustomizeconfig.yaml":          "webhook/certmanager_kustomizeconfig.yaml.tmpl",
	"config/network-policy/allow-webhook-traffic.yaml": "webhook/allow-webhook-traffic.yaml.tmpl",
	defaultFolder + "manager_webhook_patch.yaml":       "webhook/manager_patch.yaml.tmpl",
}

const (
	webhookKustomization = "config/webhook/" + kustomization
	policyKustomization  = "config/network-policy/" + kustomization
	replacementsFile     = "webhook_replacements.yaml"
	replacementsTemplate = "init/" + defaultFolder + replacementsFile + templateSuffix
	webhookManifests     = "config/webhook/manifests.yaml"

	serviceLine   = "- service.yaml\n"
	manifestsLine = "- manifests.yaml\n"
	policyLine    = "- allow-webhook-traffic.yaml\n"

	configurationsOff = "#configurations:\n#- kustomizeconfig.yaml\n"
	configurationsOn  = "configurations:\n- kustomizeconfig.yaml\n"
)

// webhookSwitches are lines of config/default that webhooks need, before and after the change.
var webhookSwitches = [][2]string{
	{"#- ../webhook\n", "- ../webhook\n"},
	{"#- ../certmanager\n", "- ../certmanager\n"},
	{
		"#- path: manager_webhook_patch.yaml\n#  target:\n#    kind: Deployment\n",
		"- path: manager_webhook_patch.yaml\n  target:\n    kind: Deployment\n",
	},
}

// What fills in the names of certificates: a file that our projects have from the beginning. kubebuilder has text for it in config/default itself.
var (
	replacementsSwitch            = [2]string{"#replacements: [{path: " + replacementsFile + "}]\n", "replacements: [{path: " + replacementsFile + "}]\n"}
	kubebuilderReplacementsSwitch = [2]string{"#replacements:\n", "replacements:\n - path: " + replacementsFile + "\n"}
)

func conversionFragment(patch string) string { return "- path: patches/" + path.Base(patch) + "\n" }

func webhookImport(w Webhook) goImport { return goImport{alias: w.Alias, path: w.Import} }

// wireWebhook adds webhooks to the shared files.
func (p *project) wireWebhook(api API, w Webhook) error {
	var err error
	if w.Alias, err = p.nameInMain(webhookImport(w)); err != nil {
		return err
	}
	if err := p.addImports(mainFile, p.Repo, webhookImport(w)); err != nil {
		return err
	}
	if err := p.insert(mainFile, markerBuilder, webhookFragment(api, w)); err != nil {
		return err
	}
	if err := p.enableWebhooks(api, w); err != nil {
		return err
	}
	if w.Admission() {
		if err := p.listManifests(); err != nil {
			return err
		}
	}
	if !w.Conversion {
		return nil
	}
	if err := p.insert(crdKustomization, markerCRDPatch, conversionFragment(p.conversionPatch(api))); err != nil {
		return err
	}
	_, err = p.replace(crdKustomization, configurationsOff, configurationsOn)
	return err
}

// enableWebhooks adds what the first webhook of a project needs.
func (p *project) enableWebhooks(api API, w Webhook) error {
	content, err := p.read(defaultKustomation)
	if err != nil {
		return err
	}
	if content == nil {
		return wrongInput("file %s does not exist, but must deploy the webhooks", defaultKustomation).hint("this project layout is not supported")
	}
	for _, one := range webhookSwitches {
		if err := p.turnOn(one); err != nil {
			return err
		}
	}
	if !bytes.Contains(content, []byte("\nreplacements:")) { // otherwise the project sets the names in its own way
		found, err := p.replace(defaultKustomation, replacementsSwitch[0], replacementsSwitch[1])
		if err == nil && !found {
			err = errors.Join(p.turnOn(kubebuilderReplacementsSwitch), p.writeIfMissing(defaultFolder+replacementsFile, replacementsTemplate, view{Project: p.Project}))
		}
		if err != nil {
			return err
		}
	}
	data := view{Project: p.Project, API: api, Webhook: w}
	for name, template := range sharedWebhookFiles {
		if err := p.writeIfMissing(name, template, data); err != nil {
			return err
		}
	}
	return p.appendIfThere(policyKustomization, policyLine)
}

// turnOn changes lines of config/default, unless that has been done already.
func (p *project) turnOn(one [2]string) error {
	content, err := p.read(defaultKustomation)
	if err != nil || bytes.Contains(content, []byte("\n"+one[1])) {
		return err
	}
	found, err := p.replace(defaultKustomation, one[0], one[1])
	if err == nil && !found {
		return wrongInput("%s has been edited and lacks the settings that webhooks need", defaultKustomation).
			hint("add these lines and try again:").hint("%s", strings.TrimRight(one[0], "\n"))
	}
	return err
}

func (p *project) appendIfThere(file, line string) error {
	content, err := p.read(file)
	if err != nil || content == nil {
		return err
	}
	return p.appendText(file, line)
}

// listManifests adds the webhook configurations to the deployment. With conversion alone, there are none.
func (p *project) listManifests() error {
	content, err := p.read(webhookKustomization)
	if err != nil || bytes.Contains(content, []byte(manifestsLine)) {
		return err
	}
	_, err = p.replace(webhookKustomization, serviceLine, manifestsLine+serviceLine)
	return err
}
