// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
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
