// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"sigs.k8s.io/controller-tools/pkg/crd"
	"sigs.k8s.io/controller-tools/pkg/deepcopy"
	"sigs.k8s.io/controller-tools/pkg/genall"
	"sigs.k8s.io/controller-tools/pkg/markers"
	"sigs.k8s.io/controller-tools/pkg/rbac"
	"sigs.k8s.io/controller-tools/pkg/webhook"
)

const kubebuilderPrefix = "kubebuilder:"

// unknownMarkers returns the markers of a file that seem to be meant for controller-gen. controller-gen ignores
// unknown markers, so with a typo, a schema or a role silently lacks something.
func unknownMarkers(file string, content []byte) (found []Problem) {
	if !bytes.Contains(content, []byte("+"+kubebuilderPrefix)) {
		return nil
	}
	eachMarker(content, func(line int, marker string) {
		name := markerName(marker)
		if !strings.HasPrefix(name, kubebuilderPrefix) || isOfKubebuilder(name) || isKnownMarker(name) || isProse(name) {
			return
		}
		message := "unknown marker +" + name
		if similar := similarMarker(name); similar != "" {
			message += fmt.Sprintf("; did you mean +%s?", similar)
		}
		found = append(found, Problem{File: file, Line: line, Generator: toolControllerGen, Message: message})
	})
	return found
}

// isOfKubebuilder reports whether a marker is for kubebuilder itself: for its scaffolding or its book.
func isOfKubebuilder(name string) bool {
	return strings.HasPrefix(name, scaffoldPrefix) || strings.HasPrefix(name, kubebuilderPrefix+"docs-gen:")
}

// isProse reports whether a line is a sentence that mentions a marker. A single extra word may still be a marker
// without its equals sign.
func isProse(name string) bool {
	const words = 3
	return len(strings.Fields(name)) >= words
}

// markerName returns the part before the values.
func markerName(marker string) string {
	name, _, _ := strings.Cut(marker, "=")
	return strings.TrimSpace(name)
}

// isKnownMarker reports whether a marker is known. The first of several arguments is joined to the name:
// rbac:groups=apps.
func isKnownMarker(name string) bool {
	known := knownMarkers()
	if known[name] {
		return true
	}
	last := strings.LastIndexByte(name, ':')
	return last > 0 && known[name[:last]]
}

// knownMarkers are the names of what controller-gen's generators read.
var knownMarkers = sync.OnceValue(func() map[string]bool {
	registry := &markers.Registry{}
	for _, one := range []genall.Generator{crd.Generator{}, rbac.Generator{}, webhook.Generator{}, deepcopy.Generator{}} {
		// An error would be one of upstream's making, and the generators report it themselves.
		_ = one.RegisterMarkers(registry)
	}
	names := map[string]bool{}
	for _, one := range registry.AllDefinitions() {
		names[one.Name] = true
	}
	return names
})

// similarMarker returns a marker that the user may have meant, or nothing. Arguments follow the name, so
// beginnings count.
func similarMarker(name string) (similar string) {
	const tolerated = 2
	best := tolerated + 1
	for _, known := range slices.Sorted(maps.Keys(knownMarkers())) {
		for _, part := range []string{name, name[:strings.LastIndexByte(name, ':')]} {
			if distance := editDistance(part, known); distance < best {
				similar, best = known, distance
			}
		}
	}
	return similar
}

// editDistance is the number of letters to insert, delete or replace to turn one word into the other.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0]++
		for j := range len(b) {
			changed := diagonal
			if a[i] != b[j] {
				changed++
			}
			diagonal = row[j+1]
			row[j+1] = min(changed, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
