// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/opdock/opdock/internal/projectfile"
)

// DeleteOptions say what to remove from a project.
type DeleteOptions struct {
	Dir                  string
	Group, Version, Kind string
	// Force removes files that somebody has edited, too.
	Force bool
}

// removal collects files that stay.
type removal struct {
	*project
	force     bool
	remaining []string
}

func startRemoval(o DeleteOptions) (*removal, *projectfile.Resource, error) {
	p, err := open(o.Dir)
	if err != nil {
		return nil, nil, err
	}
	resource, err := p.find(o.Group, o.Version, o.Kind)
	if err != nil {
		return nil, nil, err
	}
	return &removal{project: p, force: o.Force}, resource, nil
}

func (r *removal) plan() (*Plan, error) {
	plan, err := r.finish()
	if err != nil {
		return nil, err
	}
	slices.Sort(r.remaining)
	plan.Remaining = slices.Compact(r.remaining)
	return plan, nil
}

// DeleteAPI plans the end of a kind: everything that CreateAPI has made, and its webhooks. Files that are not as they were
// made stay, and the plan lists them.
func DeleteAPI(o DeleteOptions) (*Plan, error) {
	r, resource, err := startRemoval(o)
	if err != nil {
		return nil, err
	}
	for i := range r.file.Resources {
		other := &r.file.Resources[i]
		if other.Group == o.Group && other.Kind == o.Kind && other.Webhooks != nil && slices.Contains(other.Webhooks.Spoke, o.Version) {
			return nil, wrongInput("%s %s is converted to and from %s", o.Kind, o.Version, other.Version).
				hint("remove that first: opdock delete webhook %s", gvkFlags(o.Group, other.Version, o.Kind))
		}
	}
	api := r.api(resource)
	hadTypes, hadController := resource.API != nil, resource.Controller
	if err := r.removeWebhooks(resource); err != nil {
		return nil, err
	}
	sample, err := r.read(api.Sample())
	if err != nil {
		return nil, err
	}
	// Whether it was the first version when it was made, PROJECT does not say.
	if bytes.Contains(sample, []byte("name: "+api.versionedSample()+"\n")) {
		api.SampleObject = api.versionedSample()
	}
	s, shortName, err := r.recognise(api, hadTypes, hadController)
	if err != nil {
		return nil, err
	}
	api.ShortName = shortName
	files, err := r.apiFiles(api, s, hadTypes, hadController)
	if err != nil {
		return nil, err
	}
	if err := r.removeFiles(files); err != nil {
		return nil, err
	}
	r.file.Remove(o.Group, o.Version, o.Kind)
	if hadController {
		if err := r.unwireController(api); err != nil {
			return nil, err
		}
	}
	if hadTypes {
		if err := r.unwireTypes(api); err != nil {
			return nil, err
		}
	}
	if err := r.removeRequired(api, s); err != nil {
		return nil, err
	}
	if err := r.resetRole(); err != nil {
		return nil, err
	}
	return r.plan()
}

// DeleteWebhook plans the end of the webhooks of a kind.
func DeleteWebhook(o DeleteOptions) (*Plan, error) {
	r, resource, err := startRemoval(o)
	if err != nil {
		return nil, err
	}
	if resource.Webhooks == nil {
		return nil, wrongInput("%s %s has no webhooks", o.Kind, o.Version)
	}
	if err := r.removeWebhooks(resource); err != nil {
		return nil, err
	}
	return r.plan()
}

// removeFiles removes files that are as they were made. Go files need each other: if somebody has edited one of them, or
// one has stayed that uses them, all stay, so that the project still compiles.
func (r *removal) removeFiles(files map[string][]byte) error {
	keepGo := slices.ContainsFunc(r.remaining, isGo)
	edited := map[string]bool{}
	for name, content := range files {
		existing, err := r.read(name)
		if err != nil {
			return err
		}
		edited[name] = !r.force && existing != nil && !bytes.Equal(existing, content)
		keepGo = keepGo || edited[name] && isGo(name)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		existing, err := r.read(name)
		if err != nil {
			return err
		}
		switch {
		case existing == nil:
		case edited[name] || keepGo && isGo(name):
			r.remaining = append(r.remaining, name)
		default:
			if err := r.remove(name); err != nil {
				return err
			}
		}
	}
	return nil
}

func isGo(name string) bool { return strings.HasSuffix(name, ".go") }

// removeTemplate removes a file that is as the template makes it.
func (r *removal) removeTemplate(name, template string, data view) error {
	content, err := render(template, data)
	if err != nil {
		return err
	}
	return r.removeFiles(map[string][]byte{name: content})
}

var shortNamePattern = regexp.MustCompile(`(?m)^// \+kubebuilder:resource:.*shortName=([a-z0-9-]+)`)

// recognise finds out what a kind was made from: PROJECT does not say. It is what makes the most of its files.
func (r *removal) recognise(api API, types, controller bool) (best shape, shortName string, err error) {
	content, err := r.read(path.Join(api.Dir, api.Singular+"_types.go"))
	if err != nil {
		return best, "", err
	}
	names := []string{""}
	if found := shortNamePattern.FindSubmatch(content); found != nil {
		names = append(names, string(found[1])) // it may be the template's own
	}
	shapes, err := allShapes()
	if err != nil {
		return best, "", err
	}
	most := -1
	for _, s := range shapes {
		for _, name := range names {
			api.ShortName = name
			files, err := r.apiFiles(api, s, types, controller)
			if err != nil {
				return best, "", err
			}
			same := 0
			for file, content := range files {
				if existing, err := r.read(file); err == nil && existing != nil && bytes.Equal(r.withoutStorageMarker(file, existing), content) {
					same++
				}
			}
			if same > most {
				best, shortName, most = s, name, same
			}
		}
	}
	// The marker was added with another version, and is no edit.
	file := path.Join(api.Dir, api.Singular+"_types.go")
	if content != nil {
		api.ShortName = shortName
		if pristine, err := r.apiFiles(api, best, types, false); err == nil && bytes.Equal(r.withoutStorageMarker(file, content), pristine[file]) {
			if err := r.write(file, pristine[file]); err != nil {
				return best, "", err
			}
		}
	}
	return best, shortName, nil
}

func (r *removal) withoutStorageMarker(file string, content []byte) []byte {
	if !strings.HasSuffix(file, "_types.go") {
		return content
	}
	return bytes.Replace(content, []byte(rootMarker+storageMarker), []byte(rootMarker), 1)
}

func (r *removal) unwireController(api API) error {
	if err := r.cutStatement(mainFile, "&"+api.ControllerAlias+"."+api.Kind+"Reconciler{"); err != nil {
		return err
	}
	return r.cutUnusedImports(mainFile, controllerImport(api), apiImport(api))
}

func (r *removal) unwireTypes(api API) error {
	data := view{Project: r.Project, API: api}
	if !slices.ContainsFunc(r.file.Resources, func(other projectfile.Resource) bool { return other.Path == api.Package }) {
		if err := r.cut(mainFile, schemeFragment(api)); err != nil {
			return err
		}
		if err := r.cutUnusedImports(mainFile, apiImport(api)); err != nil {
			return err
		}
		if err := r.removeTemplate(path.Join(api.Dir, "groupversion_info.go"), "api/groupversion_info.go.tmpl", data); err != nil {
			return err
		}
		if !slices.ContainsFunc(r.remaining, isGo) {
			if err := r.remove(path.Join(api.Dir, "zz_generated.deepcopy.go")); err != nil {
				return err
			}
		}
	}
	if err := r.cut(sampleFolder+kustomization, sampleFragment(api)); err != nil {
		return err
	}
	if r.otherVersion(api) {
		return r.unmarkStorageVersion(api)
	}
	if err := r.cut(rbacKustomization, r.rolesFragment(api)); err != nil {
		return err
	}
	if err := r.cut(crdKustomization, crdFragment(api)); err != nil {
		return err
	}
	if err := r.remove("config/crd/bases/" + crdBase(api)); err != nil {
		return err
	}
	if slices.ContainsFunc(r.file.Resources, func(other projectfile.Resource) bool { return other.API != nil }) {
		return nil
	}
	// That was the last kind.
	if _, err := r.replace(defaultKustomation, crdOn, crdOff); err != nil {
		return err
	}
	for name, template := range map[string]string{
		crdKustomization:                  "api/crd_kustomization.yaml.tmpl",
		"config/crd/kustomizeconfig.yaml": "api/crd_kustomizeconfig.yaml.tmpl",
		sampleFolder + kustomization:      "api/samples_kustomization.yaml.tmpl",
	} {
		if err := r.removeTemplate(name, template, data); err != nil {
			return err
		}
	}
	return nil
}

// unmarkStorageVersion takes back the marker that a second version made necessary.
func (r *removal) unmarkStorageVersion(api API) error {
	if r.versionsBeside(api) != 1 {
		return nil
	}
	for i := range r.file.Resources {
		other := &r.file.Resources[i]
		if other.Group != api.Group || other.Kind != api.Kind || other.API == nil {
			continue
		}
		name := path.Join(r.api(other).Dir, api.Singular+"_types.go")
		content, err := r.read(name)
		if err != nil || content == nil {
			return err
		}
		return r.write(name, r.withoutStorageMarker(name, content))
	}
	return nil
}

// removeRequired removes what only this kind has needed.
func (r *removal) removeRequired(api API, s shape) error {
	imports, err := r.allImports()
	if err != nil {
		return err
	}
	// Packages that need each other go together, so that it may take several rounds until nothing is left.
	files := maps.Clone(s.requires)
	for again := true; again; {
		again = false
		for _, name := range slices.Sorted(maps.Keys(files)) {
			if imports[path.Join(r.Repo, path.Dir(name))] {
				continue
			}
			if err := r.removeTemplate(name, files[name], view{Project: r.Project, API: api}); err != nil {
				return err
			}
			delete(files, name)
			again = true
		}
		if imports, err = r.allImports(); err != nil {
			return err
		}
	}
	return nil
}

// resetRole makes the role what it was in the beginning, once no controller is left to generate it from.
func (r *removal) resetRole() error {
	if slices.ContainsFunc(r.file.Resources, func(other projectfile.Resource) bool { return other.Controller }) {
		return nil
	}
	content, err := render("init/"+roleFile+templateSuffix, view{Project: r.Project})
	if err != nil {
		return err
	}
	existing, err := r.read(roleFile)
	if err != nil || existing == nil || len(r.remaining) > 0 {
		return err
	}
	return r.write(roleFile, content)
}
