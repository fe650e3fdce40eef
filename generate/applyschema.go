// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/opdock/opdock/internal/applyschema"
)

// schemaFromCRDs is the value of ClientConfig.ApplySchema that selects the CRDs.
const schemaFromCRDs = "crd"

// errNoCRDs means that there are no CRDs because they could not be generated.
var errNoCRDs = errors.New("no CRDs found")

// writeApplySchema writes the OpenAPI document with the merge rules for applyconfiguration-gen, from the CRDs of the
// same run.
func (p *plan) writeApplySchema(l *loaded, out *outputs, file string) error {
	crds, err := p.readCRDs(out)
	if err != nil {
		return err
	}
	packages := applyschema.GoPackages{}
	for _, dir := range p.client {
		one := l.packages[p.module.importPath(dir)]
		if group, found := markerValue(one, "groupName"); found {
			packages[schema.GroupVersion{Group: group, Version: path.Base(dir)}] = one.PkgPath
		}
	}
	document, err := applyschema.Document(crds, packages)
	if err != nil {
		return fmt.Errorf("creating a schema for apply configurations: %w", err)
	}
	if err := os.WriteFile(file, document, 0o600); err != nil {
		return fmt.Errorf("creating a schema for apply configurations: %w", err)
	}
	return nil
}

// readCRDs returns the CRDs of this run, or those on disk if this run generates none.
func (p *plan) readCRDs(out *outputs) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	dir := p.module.absolute(p.config.CRD.Dir)
	contents := out.filesIn(dir)
	if len(p.crd) > 0 && len(contents) == 0 {
		return nil, errNoCRDs
	}
	if len(p.crd) == 0 {
		files, err := filepath.Glob(filepath.Join(dir, "*_*.yaml"))
		if err != nil {
			return nil, fmt.Errorf("reading CRDs: %w", err)
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				return nil, fmt.Errorf("reading CRDs: %w", err)
			}
			contents[file] = content
		}
	}
	crds := make([]*apiextensionsv1.CustomResourceDefinition, 0, len(contents))
	for file, content := range contents {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(content, crd); err != nil {
			return nil, fmt.Errorf("reading %s: %w", p.module.relative(file), err)
		}
		crds = append(crds, crd)
	}
	return crds, nil
}

// filesIn returns the files directly in a folder.
func (o *outputs) filesIn(dir string) map[string][]byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	files := map[string][]byte{}
	for file, content := range o.files {
		if filepath.Dir(file) == dir {
			files[file] = content
		}
	}
	return files
}
