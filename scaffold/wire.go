// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	"fmt"
	"path"
	"strings"
)

// What becomes part of files that kinds share.

func schemeFragment(api API) string {
	return fmt.Sprintf("\tutilruntime.Must(%s.AddToScheme(scheme))\n", api.Alias)
}

func controllerFragment(api API) string {
	return fmt.Sprintf(`	if err := (&%[1]s.%[2]sReconciler{
		Client: mgr.GetClient(),
		Scheme: mgr.GetScheme(),
	}).SetupWithManager(mgr); err != nil {
		setupLog.Error(err, "unable to create controller", "controller", "%[2]s")
		os.Exit(1)
	}
`, api.ControllerAlias, api.Kind)
}

func crdFragment(api API) string { return "- bases/" + crdBase(api) + "\n" }
func crdBase(api API) string     { return api.QualifiedGroup + "_" + api.Plural + ".yaml" }
func sampleFragment(api API) string {
	return "- " + path.Base(api.Sample()) + "\n"
}

func (p *project) rolesFragment(api API) string {
	var lines strings.Builder
	for _, role := range roles {
		fmt.Fprintf(&lines, "- %s\n", path.Base(p.roleFile(api, role)))
	}
	return lines.String()
}

const (
	crdOff = "#- ../crd\n"
	crdOn  = "- ../crd\n"
)

func apiImport(api API) goImport { return goImport{alias: api.Alias, path: api.Package} }

func controllerImport(api API) goImport {
	return goImport{alias: api.ControllerAlias, path: api.ControllerImport}
}

// asInMain returns the API with the import names in main. Names that kubebuilder or the user chose stay.
func (p *project) asInMain(api API) (API, error) {
	var err error
	if api.Alias, err = p.nameInMain(apiImport(api)); err != nil {
		return api, err
	}
	api.ControllerAlias, err = p.nameInMain(controllerImport(api))
	return api, err
}

// wireAPI adds a kind to the shared files.
func (p *project) wireAPI(api API, resource, controller bool) error {
	api, err := p.asInMain(api)
	if err != nil {
		return err
	}
	if resource {
		if err := p.wireTypes(api); err != nil {
			return err
		}
	}
	if controller {
		if err := p.addImports(mainFile, p.Repo, apiImport(api), controllerImport(api)); err != nil {
			return err
		}
		if err := p.insert(mainFile, markerBuilder, controllerFragment(api)); err != nil {
			return err
		}
	}
	return nil
}

func (p *project) wireTypes(api API) error {
	data := view{Project: p.Project, API: api}
	for name, template := range map[string]string{
		path.Join(api.Dir, "groupversion_info.go"): "api/groupversion_info.go.tmpl",
		crdKustomization:                  "api/crd_kustomization.yaml.tmpl",
		"config/crd/kustomizeconfig.yaml": "api/crd_kustomizeconfig.yaml.tmpl",
		sampleFolder + kustomization:      "api/samples_kustomization.yaml.tmpl",
	} {
		if err := p.writeIfMissing(name, template, data); err != nil {
			return err
		}
	}
	if err := p.addImports(mainFile, p.Repo, apiImport(api)); err != nil {
		return err
	}
	if err := p.insert(mainFile, markerScheme, schemeFragment(api)); err != nil {
		return err
	}
	if err := p.insert(crdKustomization, markerCRD, crdFragment(api)); err != nil {
		return err
	}
	if err := p.insert(sampleFolder+kustomization, markerSamples, sampleFragment(api)); err != nil {
		return err
	}
	if !p.otherVersion(api) {
		if err := p.appendText(rbacKustomization, p.rolesFragment(api)); err != nil {
			return err
		}
	} else if err := p.markStorageVersion(api); err != nil {
		return err
	}
	_, err := p.replace(defaultKustomation, crdOff, crdOn)
	return err
}

func (p *project) writeIfMissing(name, template string, data view) error {
	existing, err := p.read(name)
	if err != nil || existing != nil {
		return err
	}
	content, err := render(template, data)
	if err != nil {
		return err
	}
	return p.write(name, content)
}

const (
	rootMarker    = "// +kubebuilder:object:root=true\n"
	storageMarker = "// +kubebuilder:storageversion\n"
)

// markStorageVersion makes the oldest version of a kind the storage version, unless there is one already. With
// several versions, the API server requires one.
func (p *project) markStorageVersion(api API) error {
	first := ""
	for i := range p.file.Resources {
		other := &p.file.Resources[i]
		if other.Group != api.Group || other.Kind != api.Kind || other.Version == api.Version || other.API == nil {
			continue
		}
		name := path.Join(p.api(other).Dir, api.Singular+"_types.go")
		content, err := p.read(name)
		if err != nil {
			return err
		}
		if bytes.Contains(content, []byte(storageMarker)) {
			return nil
		}
		if content != nil && first == "" {
			first = name
		}
	}
	if first == "" {
		return nil
	}
	content, err := p.read(first)
	if err != nil {
		return err
	}
	before, after, found := bytes.Cut(content, []byte(rootMarker))
	if !found {
		return wrongInput("%s lacks the line %q above the kind", first, strings.TrimSpace(rootMarker)).hint("with a second version, one of them must be the storage version")
	}
	return p.write(first, concat(before, []byte(rootMarker+storageMarker), after))
}
