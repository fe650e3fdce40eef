// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"fmt"
	"path"
	"strings"

	"github.com/opdock/opdock/internal/projectfile"
)

// newResource validates the options and adds the resource to PROJECT.
func (p *project) newResource(o *APIOptions) (*projectfile.Resource, error) {
	if err := o.check(p.Domain); err != nil {
		return nil, err
	}
	if err := p.checkGroups(o.Group); err != nil {
		return nil, err
	}
	existing := p.file.Find(o.Group, o.Version, o.Kind)
	if existing != nil && (existing.API != nil && !o.NoResource || existing.Controller && !o.NoController && o.NoResource) {
		return nil, wrongInput("%s %s/%s already exists", o.Kind, existing.QualifiedGroup(), o.Version).
			hint("remove it: opdock delete api %s", gvkFlags(o.Group, o.Version, o.Kind))
	}
	if existing == nil && o.NoResource {
		return nil, wrongInput("%s %s does not exist in this project, and --resource=false does not create its types", o.Kind, o.Version).
			hint("remove --resource=false; kinds of other modules are not supported")
	}
	if existing != nil {
		existing.Controller = existing.Controller || !o.NoController
		if !o.NoResource {
			existing.API = &projectfile.API{CRDVersion: "v1", Namespaced: !o.ClusterScoped}
		}
		return existing, nil
	}
	if err := p.checkCollisions(o); err != nil {
		return nil, err
	}
	resource := projectfile.Resource{
		API:        &projectfile.API{CRDVersion: "v1", Namespaced: !o.ClusterScoped},
		Controller: !o.NoController, Domain: p.Domain, Group: o.Group, Kind: o.Kind, Version: o.Version,
	}
	if o.Plural != "" && o.Plural != projectfile.RegularPlural(o.Kind) {
		resource.Plural = o.Plural
	}
	resource.Path = path.Join(p.Repo, p.api(&resource).Dir)
	p.file.Resources = append(p.file.Resources, resource)
	return &p.file.Resources[len(p.file.Resources)-1], nil
}

// takeShortName gives another version of a kind the same short name. A CRD has one set of names for all versions, and
// controller-gen takes them from whichever version it happens to see last.
func (p *project) takeShortName(o *APIOptions, other API) error {
	if o.ShortName != "" {
		return nil
	}
	content, err := p.read(path.Join(other.Dir, other.Singular+"_types.go"))
	if err != nil {
		return err
	}
	if found := shortNamePattern.FindSubmatch(content); found != nil {
		o.ShortName = string(found[1])
	}
	return nil
}

func (o *APIOptions) check(domain string) error {
	switch {
	case o.Version == "" || o.Kind == "":
		return wrongInput("--version and --kind are required").hint("for example: --group ship --version v1 --kind Frigate")
	case o.NoResource && o.NoController:
		return wrongInput("nothing to create: both types and controller are disabled").hint("remove --resource=false or --controller=false")
	case o.Empty && o.From != "":
		return wrongInput("--empty cannot be used with --from %s", o.From).hint("remove --empty or --from")
	}
	checks := []error{checkKind(o.Kind), checkVersion(o.Version), checkGroup(o.Group, domain)}
	if o.Plural != "" {
		checks = append(checks, checkPlural(o.Plural))
	}
	if o.ShortName != "" {
		checks = append(checks, checkShortName(o.ShortName))
	}
	for _, err := range checks {
		if err != nil {
			return err
		}
	}
	return nil
}

// checkGroups refuses a second group where the folders have no place for it.
func (p *project) checkGroups(group string) error {
	if p.MultiGroup {
		return nil
	}
	for i := range p.file.Resources {
		if other := p.file.Resources[i].Group; other != group && p.file.Resources[i].API != nil {
			return wrongInput("this project has a single group, %q; %q would be a second one", other, group).
				hint("to support several groups, set multigroup: true in PROJECT, move api/VERSION to api/%s/VERSION, and move internal/controller to internal/controller/%s", other, other)
		}
	}
	return nil
}

// checkCollisions compares with the kinds that there are.
func (p *project) checkCollisions(o *APIOptions) error {
	plural := o.Plural
	if plural == "" {
		plural = projectfile.RegularPlural(o.Kind)
	}
	for i := range p.file.Resources {
		other := &p.file.Resources[i]
		if other.Group != o.Group {
			continue
		}
		if other.Kind == o.Kind {
			if other.Controller {
				o.NoController = true // one controller reconciles all versions
			}
			if other.API != nil && other.API.Namespaced == o.ClusterScoped {
				return wrongInput("%s %s already exists with another scope; all versions of a kind must have the same scope", o.Kind, other.Version).
					hint("namespaced: %t", other.API.Namespaced)
			}
			if o.Plural == "" {
				o.Plural = other.Plural
			} else if other.PluralName() != plural {
				return wrongInput("the plural of %s is %q in another version, so it cannot be %q", o.Kind, other.PluralName(), plural)
			}
			if err := p.takeShortName(o, p.api(other)); err != nil {
				return err
			}
			continue
		}
		if other.PluralName() == plural {
			return wrongInput("the plural %q is already used by %s %s", plural, other.Kind, other.Version).hint("use another one: --plural")
		}
		if strings.EqualFold(other.Kind, o.Kind) {
			return wrongInput("%s differs from the existing kind %s only in case", o.Kind, other.Kind)
		}
		if other.Version == o.Version {
			for _, suffix := range []string{"Spec", "Status", "List"} {
				if other.Kind+suffix == o.Kind || o.Kind+suffix == other.Kind {
					return wrongInput("%s and the kind %s would declare the same type", o.Kind, other.Kind)
				}
			}
		}
	}
	return nil
}

func gvkFlags(group, version, kind string) string {
	return fmt.Sprintf("--group %s --version %s --kind %s", group, version, kind)
}
