// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/publicsuffix"
)

// change is a file that has to be written or removed.
type change struct {
	Change
	content []byte // desired content; nil if the file should not exist
	before  []byte // current content; nil if the file does not exist
	mode    fs.FileMode
}

func publicChanges(changes []change) []Change {
	list := make([]Change, 0, len(changes))
	for _, one := range changes {
		list = append(list, one.Change)
	}
	return list
}

// compare finds the differences between the files on disk and the generated ones.
func compare(p *plan, files map[string][]byte, found *discovery) ([]change, error) {
	var changes []change
	for _, file := range slices.Sorted(maps.Keys(files)) {
		one := change{Change: Change{Path: p.module.relative(file), Kind: Missing}, content: files[file], mode: 0o644}
		info, err := os.Stat(file)
		if err == nil && !info.Mode().IsRegular() {
			return nil, fmt.Errorf("%s would be generated, but it is not a regular file", one.Path)
		}
		if err == nil {
			one.mode = info.Mode().Perm()
			one.before, err = os.ReadFile(file)
			one.Kind = Changed
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("comparing: %w", err)
		}
		if one.before != nil && path.Ext(file) == ".go" && generatorOf(one.before) == "" {
			return nil, fmt.Errorf("%s would be overwritten, but it was written by hand: it lacks the line \"Code generated ... DO NOT EDIT.\"", one.Path)
		}
		if one.before != nil && equalButForVersion(one.before, one.content) {
			files[file] = one.before
			continue
		}
		changes = append(changes, one)
	}
	leftovers, err := p.leftovers(files, found)
	if err != nil {
		return nil, err
	}
	changes = append(changes, leftovers...)
	slices.SortFunc(changes, func(a, b change) int { return cmp.Compare(a.Path, b.Path) })
	return changes, nil
}

var versionLine = regexp.MustCompile(regexp.QuoteMeta(crdVersionAnnotation) + ".*")

// equalButForVersion is true for files that are equal, and for CRDs that differ only in the version of
// controller-gen. Otherwise CRDs would change back and forth in a project that also uses another version.
func equalButForVersion(before, now []byte) bool {
	if bytes.Equal(before, now) {
		return true
	}
	place := versionLine.FindIndex(now)
	was := versionLine.FindIndex(before)
	return place != nil && was != nil && bytes.Equal(before[:was[0]], now[:place[0]]) && bytes.Equal(before[was[1]:], now[place[1]:])
}

// leftovers returns files of an earlier run that are no longer generated. A file counts only if its header names a
// generator of this run, and if it is where that generator writes.
func (p *plan) leftovers(files map[string][]byte, found *discovery) ([]change, error) {
	candidates := map[string]bool{}
	for _, file := range found.files {
		if file.generator != "" {
			candidates[p.module.absolute(file.path)] = true
		}
	}
	for _, dir := range p.ownFolders() {
		err := filepath.WalkDir(p.module.absolute(dir), func(file string, entry fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err == nil && entry.Type().IsRegular() {
				candidates[file] = true
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("finding stale files: %w", err)
		}
	}
	var left []change
	for _, file := range slices.Sorted(maps.Keys(candidates)) {
		if _, generated := files[file]; generated {
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("finding stale files: %w", err)
		}
		if name := p.module.relative(file); p.owns(name, content, files) {
			left = append(left, change{Change: Change{Path: name, Kind: Leftover}, before: content, mode: 0o644})
		}
	}
	return left, nil
}

// ownFolders returns the folders that the files of all packages share.
func (p *plan) ownFolders() []string {
	if p.partial {
		return nil
	}
	dirs := []string{p.config.OpenAPI.Dir}
	if _, limited := p.config.pathsInMakefile[genCRD]; !limited {
		dirs = append(dirs, p.config.CRD.Dir) // otherwise, another tool may write CRDs there as well
	}
	for _, part := range []string{clientsetPart, listersPart, informersPart, applyPart} {
		dirs = append(dirs, path.Join(p.config.Client.Dir, part))
	}
	return dirs
}

// owns reports whether a file that is no longer generated was written by a generator of this run, next to these
// files.
func (p *plan) owns(name string, content []byte, files map[string][]byte) bool {
	in := func(dirs ...string) bool { return strings.HasPrefix(name, path.Join(dirs...)+"/") }
	base, tool := path.Base(name), generatorOf(content)
	switch tool {
	case toolControllerGen, toolDeepcopyGen:
		return base == deepcopyFile && p.enabled[genDeepcopy]
	case "defaulter-gen":
		return base == defaultsFile && p.enabled[genDefaulter]
	case "register-gen":
		return base == registerFile && p.enabled[genRegister]
	case "openapi-gen":
		return base == openAPIFile && in(p.config.OpenAPI.Dir) && p.enabled[genOpenAPI]
	case "client-gen":
		return in(p.config.Client.Dir, clientsetPart) && p.enabled[genClient]
	case "lister-gen":
		return in(p.config.Client.Dir, listersPart) && p.enabled[genLister]
	case "informer-gen":
		return in(p.config.Client.Dir, informersPart) && p.enabled[genInformer]
	case "applyconfiguration-gen":
		return in(p.config.Client.Dir, applyPart) && p.enabled[genApplyConfig]
	}
	return path.Ext(name) == ".yaml" && path.Dir(name) == path.Clean(p.config.CRD.Dir) && p.enabled[genCRD] &&
		strings.Contains(base, "_") && bytes.Contains(content, []byte("\nkind: CustomResourceDefinition\n")) &&
		bytes.Contains(content, []byte(crdVersionAnnotation)) && p.ownGroup(base, files)
}

// ownGroup reports whether a CRD belongs to a group of this module. The folder may also contain CRDs of other projects,
// many of them generated by controller-gen. In the usual folder, a group of the same domain counts as well: its last
// kind may be gone.
func (p *plan) ownGroup(base string, files map[string][]byte) bool {
	group, _, _ := strings.Cut(base, "_")
	usual := path.Clean(p.config.CRD.Dir) == defaultCRDDir
	for file := range files {
		if filepath.Dir(file) != p.module.absolute(p.config.CRD.Dir) {
			continue
		}
		own, _, _ := strings.Cut(filepath.Base(file), "_")
		if own == group || usual && domainOf(own) == domainOf(group) {
			return true
		}
	}
	return false
}

// sharedDomains are domains of many projects, so another group of theirs is another project's.
var sharedDomains = map[string]bool{"k8s.io": true, "x-k8s.io": true}

// domainOf returns the domain that a group belongs to, or the group itself if it belongs to none of a single owner.
func domainOf(group string) string {
	domain, err := publicsuffix.EffectiveTLDPlusOne(group)
	if err != nil || sharedDomains[domain] {
		return group
	}
	return domain
}
