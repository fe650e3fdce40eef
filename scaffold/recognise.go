// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	"path"
	"regexp"
	"strings"
)

var shortNamePattern = regexp.MustCompile(`(?m)^// \+kubebuilder:resource:.*shortName=([a-z0-9-]+)`)

// recognise determines the templates of a kind, which PROJECT does not record: the set that produces most of
// its files.
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

// recogniseSample determines whether it was the first version of the kind when it was created, which PROJECT
// does not record either.
func (r *removal) recogniseSample(api *API) error {
	content, err := r.read(api.Sample())
	if bytes.Contains(content, []byte("name: "+api.versionedSample()+"\n")) {
		api.SampleObject = api.versionedSample()
	}
	return err
}
