// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package project

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/opdock/opdock/internal/hint"
)

// lacksTarget finds the object in what kustomize says about a patch that fits none, such as Deployment.v1.apps/manager.default.
var lacksTarget = regexp.MustCompile(`failed to find unique target for patch (\w+)\.[^/\s]*/(\S+)\.(\[noNs\]|[^.\s]+)`)

// strayPatch returns the error for a patch of an object that the kustomization of a folder does not have: kustomize names only the
// object. It is nil if the message is about something else.
func (p *Project) strayPatch(folder, message string) error {
	match := lacksTarget.FindStringSubmatch(message)
	if match == nil {
		return nil
	}
	kind, name, namespace := match[1], match[2], strings.TrimPrefix(match[3], "[noNs]")
	isMeant := func(one found) bool {
		return one.GetKind() == kind && one.GetName() == name && one.GetNamespace() == namespace
	}
	var stray error
	_ = filepath.WalkDir(p.path(strings.SplitN(folder, "/", 2)[0]), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !isKustomization(entry.Name()) {
			return err
		}
		for _, patch := range patchesOf(path) {
			objects, _ := p.readFile(patch) // another error is shown instead
			i := slices.IndexFunc(objects, isMeant)
			if i < 0 || p.referrer(folder, patch, map[string]bool{}) == "" {
				continue
			}
			object := kind + " " + name
			if namespace != "" {
				object += " in namespace " + namespace
			}
			stray = hint.With(fmt.Errorf("building %s: %s:%d patches %s, which is not one of the resources", folder, objects[i].file, objects[i].line, object),
				"correct the patch, or remove it from "+p.relative(path)+"; kustomize build fails as well")
			return fs.SkipAll
		}
		return nil
	})
	return stray
}
