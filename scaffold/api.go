// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/opdock/opdock/internal/projectfile"
)

// APIOptions describes the kind to create.
type APIOptions struct {
	// Dir is the folder of the project.
	Dir string
	// Group is without the domain of the project. It may be empty.
	Group   string
	Version string
	Kind    string
	// Plural is the name in paths. Default: what kubebuilder and controller-gen make of the kind.
	Plural string
	// ShortName is what kubectl also calls it. Default: none.
	ShortName string
	// ClusterScoped means that objects of the kind are in no namespace.
	ClusterScoped bool
	// NoResource creates no types, because they exist.
	NoResource bool
	// NoController creates only types. A kind has one controller, so a second version gets none either.
	NoController bool
	// Empty creates types without fields and a controller that does nothing.
	Empty bool
	// From is the name of a starter.
	From string
}

// CreateAPI plans a kind in a project.
func CreateAPI(o APIOptions) (*Plan, error) {
	p, err := open(o.Dir)
	if err != nil {
		return nil, err
	}
	resource, err := p.newResource(&o)
	if err != nil {
		return nil, err
	}
	s, err := o.shape()
	if err != nil {
		return nil, err
	}
	if s.clusterScopeIsWrong && o.ClusterScoped && !o.NoResource {
		return nil, wrongInput("a kind created from %s creates objects in its own namespace, so it must be namespaced", o.From).hint("remove --namespaced=false")
	}
	api := p.api(resource)
	api.ShortName = o.ShortName
	if p.otherVersion(api) {
		api.SampleObject = api.versionedSample()
		if !o.Empty && o.From == "" {
			s = twinShape
		}
	}
	files, err := p.apiFiles(api, s, !o.NoResource, !o.NoController)
	if err != nil {
		return nil, err
	}
	if err := p.writeNew(files); err != nil {
		return nil, err
	}
	if err := p.addRequired(api, s); err != nil {
		return nil, err
	}
	if err := p.wireAPI(api, !o.NoResource, !o.NoController); err != nil {
		return nil, err
	}
	return p.finish()
}

// finish brings PROJECT and go.mod up to date.
func (p *project) finish() (*Plan, error) {
	content, err := p.file.Bytes()
	if err != nil {
		return nil, err
	}
	if err := p.write(projectfile.Name, content); err != nil {
		return nil, err
	}
	if err := p.matchModules(); err != nil {
		return nil, err
	}
	plan := newPlan(p.tree)
	plan.Generate = len(p.file.Resources) > 0
	return plan, nil
}

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

// writeNew writes files that must not exist yet.
func (p *project) writeNew(files map[string][]byte) error {
	var taken []string
	for name, content := range files {
		existing, err := p.read(name)
		if err != nil {
			return err
		}
		if existing != nil {
			taken = append(taken, name)
			continue
		}
		if err := p.write(name, content); err != nil {
			return err
		}
	}
	if len(taken) > 0 {
		slices.Sort(taken)
		return wrongInput("these files already exist: %s", strings.Join(taken, ", "))
	}
	return nil
}

// prefix keeps the files of kinds of several groups apart.
func (p *project) prefix(api API) string {
	if p.MultiGroup && api.Group != "" {
		return api.Group + "_" + api.Singular
	}
	return api.Singular
}

var roles = []string{"admin", "editor", "viewer"}

// apiFiles are the files of one kind that belong to it alone.
func (p *project) apiFiles(api API, s shape, resource, controller bool) (map[string][]byte, error) {
	data := view{Project: p.Project, API: api}
	files := map[string][]byte{}
	add := func(name, template string) error {
		content, err := render(template, data)
		files[name] = content
		return err
	}
	if resource {
		copies := map[string][]byte(nil)
		if s.twin {
			var err error
			if copies, err = p.twinFiles(api); err != nil {
				return nil, err
			}
		}
		if maps.Copy(files, copies); copies == nil {
			if err := add(path.Join(api.Dir, api.Singular+"_types.go"), s.types); err != nil {
				return nil, err
			}
			if err := add(api.Sample(), s.sample); err != nil {
				return nil, err
			}
		}
		if !p.otherVersion(api) {
			for _, role := range roles {
				if err := add(p.roleFile(api, role), "api/"+role+"_role.yaml.tmpl"); err != nil {
					return nil, err
				}
			}
		}
	}
	if controller {
		for template, suffix := range s.controllers {
			if err := add(path.Join(api.ControllerDir, api.Singular+"_"+suffix), template); err != nil {
				return nil, err
			}
		}
	}
	return files, nil
}

func (p *project) roleFile(api API, role string) string {
	return "config/rbac/" + p.prefix(api) + "_" + role + "_role.yaml"
}

// otherVersion reports whether the kind exists in another version.
func (p *project) otherVersion(api API) bool { return p.versionsBeside(api) > 0 }

func (p *project) versionsBeside(api API) int {
	count := 0
	for i := range p.file.Resources {
		other := &p.file.Resources[i]
		if other.Group == api.Group && other.Kind == api.Kind && other.Version != api.Version && other.API != nil {
			count++
		}
	}
	return count
}

// SplitAPIVersion splits ship.example.com/v1 in a project whose domain is example.com.
func SplitAPIVersion(dir, apiVersion string) (group, version string, err error) {
	p, err := open(dir)
	if err != nil {
		return "", "", err
	}
	qualified, version, found := strings.Cut(apiVersion, "/")
	if !found || version == "" {
		return "", "", wrongInput("%q is not a group and version", apiVersion).hint("for example: --api-version ship.%s/v1", p.Domain)
	}
	if qualified == p.Domain {
		return "", version, nil
	}
	group, found = strings.CutSuffix(qualified, "."+p.Domain)
	if !found {
		return "", "", wrongInput("the group %q does not end with %s, the domain of this project", qualified, p.Domain).
			hint("for example: --api-version ship.%s/v1", p.Domain)
	}
	return group, version, nil
}
