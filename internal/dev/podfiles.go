// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/opdock/opdock/internal/dev/mounts"
)

// namespaceFile is where a pod finds the name of its namespace.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// podFiles returns the known files of the operator's pod: its namespace, and files mounted from
// ConfigMaps and Secrets of the manifests.
func (m manifests) podFiles() map[string]string {
	files := mountedFiles(m.all, m.identity)
	if files == nil {
		files = map[string]string{}
	}
	if m.identity != nil {
		files[namespaceFile] = m.identity.Namespace
	}
	return files
}

// layOutFiles prepares the mounts of the operator: the pod's files, and its own kubeconfig
// instead of the user's. The list is empty if the kernel does not allow mounts.
func (s *Session) layOutFiles() (mounts.List, error) {
	dir := filepath.Join(s.StateDir, "pod")
	if err := os.RemoveAll(dir); err != nil {
		return mounts.List{}, fmt.Errorf("removing the files of the operator's pod: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return mounts.List{}, fmt.Errorf("creating a directory for the files of the operator's pod: %w", err)
	}
	list := mounts.List{Dir: dir, Hostname: s.manifests.hostname, Traceable: s.Debugger.Path != ""}
	found := s.manifests
	found.all = s.withIssued()
	files := found.podFiles()
	if s.inCluster != nil {
		maps.Copy(files, s.inCluster.files)
	}
	for i, path := range slices.Sorted(maps.Keys(files)) {
		source := filepath.Join(dir, strconv.Itoa(i))
		if err := writePrivate(source, []byte(files[path])); err != nil {
			return mounts.List{}, fmt.Errorf("writing the files of the operator's pod: %w", err)
		}
		list.Files = append(list.Files, mounts.File{Path: path, Source: source})
	}
	for _, filled := range found.filledSecrets() {
		for _, at := range filled.dirs {
			list.Files = append(list.Files, mounts.File{Path: at, Source: s.certificates.dir})
		}
	}
	for _, own := range s.ownKubeconfigs() {
		if _, err := os.Stat(own); err == nil && own != s.KubeconfigPath() {
			list.Files = append(list.Files, mounts.File{Path: own, Source: s.KubeconfigPath()})
		}
	}
	return list, nil
}

// tryMounts returns the list if the kernel allows the mounts, and otherwise the paths of the
// files that the operator cannot see.
func (s *Session) tryMounts(list mounts.List) (visible *mounts.List, hidden map[string]string) {
	if len(list.Files) == 0 && list.Hostname == "" && !list.Traceable {
		return nil, nil
	}
	if s.mountable == nil || list.Hostname != s.mountable.Hostname || !slices.Equal(list.Files, s.mountable.Files) {
		if err := mounts.Check(list); err != nil {
			hidden = map[string]string{}
			for _, file := range list.Files {
				hidden[file.Path] = file.Source
			}
			return nil, hidden
		}
		s.mountable = &list
	}
	return &list, nil
}
