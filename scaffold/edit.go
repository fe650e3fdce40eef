// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	"fmt"
	"strings"
)

// Markers that kubebuilder puts into files to find the places again. They are shared with it.
const (
	markerImports      = "+kubebuilder:scaffold:imports"
	markerScheme       = "+kubebuilder:scaffold:scheme"
	markerBuilder      = "+kubebuilder:scaffold:builder"
	markerCRD          = "+kubebuilder:scaffold:crdkustomizeresource"
	markerCRDPatch     = "+kubebuilder:scaffold:crdkustomizewebhookpatch"
	markerSamples      = "+kubebuilder:scaffold:manifestskustomizesamples"
	kustomization      = "kustomization.yaml"
	crdKustomization   = "config/crd/" + kustomization
	sampleFolder       = "config/samples/"
	defaultFolder      = "config/default/"
	defaultKustomation = defaultFolder + kustomization
	rbacKustomization  = "config/rbac/" + kustomization
	roleFile           = "config/rbac/role.yaml"
)

// noMarker returns an error that names the missing line and the file.
func noMarker(path, marker, fragment string) error {
	comment := "// "
	if !strings.HasSuffix(path, ".go") {
		comment = "# "
	}
	return wrongInput("%s lacks the marker for new code: %s%s", path, comment, marker).
		hint("add the marker above the place for this code, and try again:").
		hint("%s", strings.ReplaceAll(strings.TrimRight(fragment, "\n"), "\n", "\n  "))
}

// insert inserts text above a marker, unless it is already there.
func (t *tree) insert(path, marker, fragment string) error {
	content, err := t.read(path)
	if err != nil {
		return err
	}
	if content == nil {
		return wrongInput("file %s does not exist, but must be changed", path)
	}
	if bytes.Contains(content, []byte(fragment)) {
		return nil
	}
	at := markerLine(content, marker)
	if at < 0 {
		return noMarker(path, marker, fragment)
	}
	return t.write(path, concat(content[:at], []byte(fragment), content[at:]))
}

// markerLine is where the line with a marker begins, or -1.
func markerLine(content []byte, marker string) int {
	offset := 0
	for line := range bytes.Lines(content) {
		text := strings.TrimSpace(string(line))
		if text == "// "+marker || text == "//"+marker || text == "# "+marker || text == "#"+marker {
			return offset
		}
		offset += len(line)
	}
	return -1
}

// cut removes text, if it is there.
func (t *tree) cut(path, fragment string) error {
	content, err := t.read(path)
	if err != nil || content == nil {
		return err
	}
	before, after, found := bytes.Cut(content, []byte(fragment))
	if !found {
		return nil
	}
	return t.write(path, concat(before, after))
}

// appendText adds text at the end, unless it is already there.
func (t *tree) appendText(path, fragment string) error {
	content, err := t.read(path)
	if err != nil {
		return err
	}
	if content == nil {
		return fmt.Errorf("file %s does not exist, but must be changed", path)
	}
	if bytes.Contains(content, []byte(fragment)) {
		return nil
	}
	if len(content) > 0 && content[len(content)-1] != '\n' {
		fragment = "\n" + fragment
	}
	return t.write(path, concat(content, []byte(fragment)))
}

// replace replaces whole lines, and reports whether they were there.
func (t *tree) replace(path, from, to string) (bool, error) {
	content, err := t.read(path)
	if err != nil || content == nil {
		return false, err
	}
	text := "\n" + string(content)
	at := strings.Index(text, "\n"+from)
	if at < 0 {
		return false, nil
	}
	return true, t.write(path, []byte((text[:at+1] + to + text[at+1+len(from):])[1:]))
}

// exchange replaces text, if it is there.
func (t *tree) exchange(path, from, to string) error {
	content, err := t.read(path)
	if err != nil || content == nil {
		return err
	}
	return t.write(path, bytes.Replace(content, []byte(from), []byte(to), 1))
}

func concat(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
