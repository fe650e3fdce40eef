// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package ship

import (
	"fmt"

	"sigs.k8s.io/kustomize/api/filters/imagetag"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// ImageName is what the manifests call the manager's image.
const ImageName = "opdock-manager"

// Image is where users get the manager's image from. What is empty stays as it is in the manifests.
type Image struct {
	Name string
	Tag  string
}

// Installer renders a folder with a kustomization into one YAML stream.
func Installer(folder string, image Image) ([]byte, error) {
	options := krusty.MakeDefaultOptions()
	// CRDs and namespaces come first, so that one run of apply is enough.
	options.Reorder = krusty.ReorderOptionLegacy
	resources, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		return nil, fmt.Errorf("rendering %s: %w", folder, err)
	}
	err = resources.ApplyFilter(imagetag.Filter{
		ImageTag: types.Image{Name: ImageName, NewName: image.Name, NewTag: image.Tag},
		FsSlice:  types.FsSlice{{Path: "spec/template/spec/containers[]/image"}},
	})
	if err != nil {
		return nil, fmt.Errorf("naming the image: %w", err)
	}
	data, err := resources.AsYaml()
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", folder, err)
	}
	return data, nil
}
