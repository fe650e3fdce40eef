// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	"errors"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/version"

	"github.com/opdock/opdock/internal/projectfile"
)

// twinShape is the shape of another version of a kind: its types and its sample are copies, so
// both versions mean the same until you change one of them.
var twinShape = shape{twin: true, types: exampleShape.types, sample: exampleShape.sample, controllers: exampleShape.controllers}

// twinOf is the version of a kind that another one is copied from: the highest that there is.
func (p *project) twinOf(api API) *projectfile.Resource {
	var twin *projectfile.Resource
	for i := range p.file.Resources {
		other := &p.file.Resources[i]
		if other.Group != api.Group || other.Kind != api.Kind || other.Version == api.Version || other.API == nil {
			continue
		}
		if twin == nil || version.CompareKubeAwareVersionStrings(other.Version, twin.Version) > 0 {
			twin = other
		}
	}
	return twin
}

var (
	packageClause = regexp.MustCompile(`(?m)^package \w+$`)
	sampleName    = regexp.MustCompile(`(?m)^  name: .*$`)
)

// twinFiles returns the types of a kind and its sample, as copies of another version's. It
// returns none if the types need other types of their package that cannot be copied, because
// they belong to other kinds or do not exist.
func (p *project) twinFiles(api API) (map[string][]byte, error) {
	resource := p.twinOf(api)
	if resource == nil {
		return nil, nil
	}
	twin := p.api(resource)
	types := twin.Singular + "_types.go"
	needed, err := p.neededFiles(twin, types)
	if err != nil || needed == nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, name := range needed {
		existing, err := p.read(path.Join(api.Dir, name))
		if err != nil {
			return nil, err
		}
		if name != types && existing != nil && p.sharesPackage(api) {
			continue // another kind of this version has brought it
		}
		content, err := p.read(path.Join(twin.Dir, name))
		if err != nil {
			return nil, err
		}
		content = bytes.Replace(content, []byte(rootMarker+storageMarker), []byte(rootMarker), 1)
		files[path.Join(api.Dir, name)] = packageClause.ReplaceAll(content, []byte("package "+api.Version))
	}
	sample, err := p.read(twin.Sample())
	if err != nil {
		return nil, err
	}
	before := "apiVersion: " + twin.QualifiedGroup + "/" + twin.Version + "\n"
	if sample == nil || bytes.Count(sample, []byte(before)) != 1 {
		return nil, nil // it is unknown what to change in it
	}
	sample = bytes.Replace(sample, []byte(before), []byte("apiVersion: "+api.QualifiedGroup+"/"+api.Version+"\n"), 1)
	if at := sampleName.FindIndex(sample); at != nil {
		sample = slices.Concat(sample[:at[0]], []byte("  name: "+api.SampleObject), sample[at[1]:])
	}
	files[api.Sample()] = sample
	return files, nil
}

// sharesPackage reports whether another kind has its types in the same package.
func (p *project) sharesPackage(api API) bool {
	return slices.ContainsFunc(p.file.Resources, func(other projectfile.Resource) bool {
		return other.Path == api.Package && other.Kind != api.Kind
	})
}

// goFiles returns the hand-written Go files in a folder.
func (p *project) goFiles(dir string) (names []string, err error) {
	entries, err := os.ReadDir(filepath.Join(p.dir, filepath.FromSlash(dir)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, entry := range entries {
		if name := entry.Name(); isGo(name) && !strings.HasSuffix(name, "_test.go") && !strings.HasPrefix(name, "zz_generated.") {
			names = append(names, name)
		}
	}
	return names, err
}

// neededFiles are the files of a package that one of them needs to compile, itself included. It is nil if one of them registers
// another kind, or cannot be read.
func (p *project) neededFiles(api API, start string) ([]string, error) {
	declared := map[string]string{} // names, and the files that they are declared in
	used := map[string]map[string]bool{}
	names, err := p.goFiles(api.Dir)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		content, err := p.read(path.Join(api.Dir, name))
		if err != nil {
			return nil, err
		}
		// Objects are resolved within the file, which leaves the names of other files.
		parsed, err := parser.ParseFile(token.NewFileSet(), name, content, 0)
		if err != nil {
			return nil, nil //nolint:nilerr // the compiler reports it
		}
		for object := range parsed.Scope.Objects {
			declared[object] = name
		}
		used[name] = map[string]bool{}
		for _, one := range parsed.Unresolved {
			used[name][one.Name] = true
		}
	}
	needed := []string{start}
	for i := 0; i < len(needed); i++ {
		if used[needed[i]] == nil {
			return nil, nil
		}
		for name := range used[needed[i]] {
			file := declared[name]
			if file == "" || file == "groupversion_info.go" || slices.Contains(needed, file) {
				continue
			}
			if strings.HasSuffix(file, "_types.go") && used[file]["SchemeBuilder"] {
				return nil, nil // another kind
			}
			needed = append(needed, file)
		}
	}
	return needed, nil
}
