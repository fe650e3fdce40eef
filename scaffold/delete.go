// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/opdock/opdock/internal/projectfile"
)

// DeleteOptions selects what to remove from a project.
type DeleteOptions struct {
	Dir                  string
	Group, Version, Kind string
	// Force removes files that were edited, too.
	Force bool
	// KeepEdited keeps them, together with the files that they need to compile. Without Force and
	// KeepEdited, nothing is planned if there are any.
	KeepEdited bool
}

// EditedError means that edited files would have to be removed, so nothing was planned.
type EditedError struct {
	// Files are sorted. They include files that an edited one needs to compile.
	Files []string
}

func (e *EditedError) Error() string {
	return "files have been edited: " + strings.Join(e.Files, ", ")
}

// removal collects files that stay.
type removal struct {
	*project
	options   DeleteOptions
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
	return &removal{project: p, options: o}, resource, nil
}

func (r *removal) plan() (*Plan, error) {
	plan, err := r.finish()
	if err != nil {
		return nil, err
	}
	slices.Sort(r.remaining)
	plan.Remaining = slices.Compact(r.remaining)
	if len(plan.Remaining) > 0 && !r.options.KeepEdited {
		return nil, &EditedError{Files: plan.Remaining}
	}
	return plan, nil
}

// DeleteAPI plans the removal of a kind: everything that CreateAPI created, and its webhooks. The options control
// what happens to edited files.
func DeleteAPI(o DeleteOptions) (*Plan, error) {
	r, resource, err := startRemoval(o)
	if err != nil {
		return nil, err
	}
	for i := range r.file.Resources {
		other := &r.file.Resources[i]
		if other.Group == o.Group && other.Kind == o.Kind && other.Webhooks != nil && slices.Contains(other.Webhooks.Spoke, o.Version) {
			return nil, wrongInput("%s %s is converted to and from %s", o.Kind, o.Version, other.Version).
				hint("remove that webhook first: opdock delete webhook %s", gvkFlags(o.Group, other.Version, o.Kind))
		}
	}
	api := r.api(resource)
	hadTypes, hadController := resource.API != nil, resource.Controller
	if err := r.removeWebhooks(resource); err != nil {
		return nil, err
	}
	if err := r.recogniseSample(&api); err != nil {
		return nil, err
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

// removeFiles removes files that were not edited. Go files depend on each other: if one of them was edited, or a
// remaining file uses them, all of them stay, so the project still compiles.
func (r *removal) removeFiles(files map[string][]byte) error {
	keepGo := slices.ContainsFunc(r.remaining, isGo)
	edited := map[string]bool{}
	for name, content := range files {
		existing, err := r.read(name)
		if err != nil {
			return err
		}
		edited[name] = !r.options.Force && existing != nil && !bytes.Equal(existing, content)
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

// removeTemplate removes a file that equals the output of the template.
func (r *removal) removeTemplate(name, template string, data view) error {
	content, err := render(template, data)
	if err != nil {
		return err
	}
	return r.removeFiles(map[string][]byte{name: content})
}

func (r *removal) unwireController(api API) error {
	api, err := r.asInMain(api)
	if err != nil {
		return err
	}
	if err := r.cutStatement(mainFile, "&"+api.ControllerAlias+"."+api.Kind+"Reconciler{"); err != nil {
		return err
	}
	return r.cutUnusedImports(mainFile, controllerImport(api), apiImport(api))
}

func (r *removal) unwireTypes(api API) error {
	data := view{Project: r.Project, API: api}
	api, err := r.asInMain(api)
	if err != nil {
		return err
	}
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
	if err := r.removeCRD("config/crd/bases/" + crdBase(api)); err != nil {
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

// removeCRD removes a CRD, unless the types stay: it would be generated again.
func (r *removal) removeCRD(name string) error {
	if !slices.ContainsFunc(r.remaining, isGo) {
		return r.remove(name)
	}
	content, err := r.read(name)
	if content != nil {
		r.remaining = append(r.remaining, name)
	}
	return err
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
	// Packages that need each other are removed together, which may take several rounds.
	files := maps.Clone(s.requires)
	for again := true; again; {
		again = false
		imports, err := r.importsWithout(files)
		if err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(files)) {
			if imports[r.packageOf(name)] {
				continue
			}
			if err := r.removeTemplate(name, files[name], view{Project: r.Project, API: api}); err != nil {
				return err
			}
			delete(files, name)
			again = true
		}
	}
	return nil
}

// importsWithout returns all imports of the project, without those of tests in packages that only these files import.
func (r *removal) importsWithout(files map[string]string) (importSet, error) {
	needed, err := r.allImports(func(name string) bool { return files[name] == "" })
	for err == nil {
		before := len(needed)
		needed, err = r.allImports(func(name string) bool { return files[name] == "" || needed[r.packageOf(name)] })
		if len(needed) == before {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	return r.allImports(func(name string) bool {
		return files[name] == "" || needed[r.packageOf(name)] || !strings.HasSuffix(name, "_test.go")
	})
}

func (r *removal) packageOf(file string) string { return path.Join(r.Repo, path.Dir(file)) }

// resetRole restores the initial role if no controller is left to generate it from.
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
