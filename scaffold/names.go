// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	gomodule "golang.org/x/mod/module"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

// InputError is an invalid request. Hints contain what to do instead.
type InputError struct {
	Message string
	Hints   []string
}

func (e *InputError) Error() string { return e.Message }

func wrongInput(format string, args ...any) *InputError {
	return &InputError{Message: fmt.Sprintf(format, args...)}
}

func (e *InputError) hint(format string, args ...any) *InputError {
	e.Hints = append(e.Hints, fmt.Sprintf(format, args...))
	return e
}

var (
	kindPattern    = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
	versionPattern = regexp.MustCompile(`^v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$`)
)

func checkDomain(domain string) error {
	if problems := validation.IsDNS1123Subdomain(domain); len(problems) > 0 {
		return wrongInput("%q is not a valid domain: use lower case letters, digits, '-' and '.'", domain).
			hint("for example: --domain example.com")
	}
	return nil
}

func checkRepo(repo string) error {
	if err := gomodule.CheckImportPath(repo); err != nil {
		return wrongInput("%q is not a valid path of a Go module: %v", repo, err).hint("for example: --repo example.com/ship-operator")
	}
	return nil
}

func checkProjectName(name string) error {
	const example = "set one: --project-name ship-operator"
	// It becomes a prefix of the names of objects, and part of the namespace. Names of Services begin with a letter.
	if problems := validation.IsDNS1035Label(name); len(problems) > 0 || len(name) > 50 {
		return wrongInput("%q is not a valid project name: use at most 50 lower case letters, digits and '-', and begin with a letter", name).hint(example)
	}
	// It is a label in manifests, where some words are not strings.
	var read any
	if err := yaml.Unmarshal([]byte(name), &read); err != nil || read != name {
		return wrongInput("%q is not a valid project name: YAML reads it as %v, not as a string", name, read).hint(example)
	}
	return nil
}

// forbiddenFolders are names that Go treats in a special way, or that would hide types from other packages.
var forbiddenFolders = []string{"internal", "vendor", "testdata"}

func checkGroup(group, domain string) error {
	qualified := strings.Trim(group+"."+domain, ".")
	switch problems := validation.IsDNS1123Subdomain(qualified); {
	case len(problems) > 0 || strings.HasPrefix(group, ".") || strings.HasSuffix(group, "."):
		return wrongInput("%q is not a valid group: use lower case letters, digits, '-' and '.'", group).
			hint("for example: --group ship, which becomes ship.%s", domain)
	case slices.Contains(forbiddenFolders, group):
		return wrongInput("%q is not a valid group: Go treats directories with that name specially", group)
	case group == domain || domain != "" && strings.HasSuffix(group, "."+domain):
		short := strings.TrimSuffix(strings.TrimSuffix(group, domain), ".")
		return wrongInput("the group %q ends with the domain of this project, which is added automatically", group).
			hint("use: --group %q", short)
	case !strings.Contains(qualified, "."):
		return wrongInput("the group %q has no domain: the API server requires a dot in it", qualified).
			hint("use a group with a dot: --group %s.example.com", qualified)
	case strings.HasSuffix(qualified, ".k8s.io") || strings.HasSuffix(qualified, ".kubernetes.io") || qualified == "k8s.io" || qualified == "kubernetes.io":
		return wrongInput("the group %q belongs to Kubernetes: the API server rejects other kinds in it", qualified).
			hint("use your own domain")
	}
	return nil
}

func checkVersion(version string) error {
	if !versionPattern.MatchString(version) {
		return wrongInput("%q is not a valid version", version).hint("for example: v1, v1alpha1 or v2beta3")
	}
	return nil
}

// registrationNames are what groupversion_info.go declares.
var registrationNames = []string{"GroupVersion", "SchemeBuilder", "AddToScheme", "SchemeGroupVersion"}

func checkKind(kind string) error {
	switch {
	case !kindPattern.MatchString(kind):
		wrong := wrongInput("%q is not a valid kind: use letters and digits, and start with a capital letter", kind)
		if better := camelCase(kind); better != kind && kindPattern.MatchString(better) {
			return wrong.hint("use: --kind %s", better)
		}
		return wrong
	case len(kind) > 50:
		return wrongInput("the kind %s is too long: it has %d characters, and the limit is 50", kind, len(kind))
	case slices.Contains(registrationNames, kind):
		return wrongInput("%s is not a valid kind: the code that registers kinds uses that name in the same package", kind)
	}
	return nil
}

// camelCase turns words such as tea-pot into a kind.
func camelCase(words string) string {
	var out strings.Builder
	upper := true
	for _, letter := range words {
		switch {
		case letter == '-' || letter == '_' || letter == ' ' || letter == '.':
			upper = true
		case upper:
			out.WriteString(strings.ToUpper(string(letter)))
			upper = false
		default:
			out.WriteRune(letter)
		}
	}
	return out.String()
}

func checkPlural(plural string) error {
	if problems := validation.IsDNS1035Label(plural); len(problems) > 0 {
		return wrongInput("%q is not a valid plural: use lower case letters, digits and '-'", plural)
	}
	return nil
}

func checkShortName(name string) error {
	if problems := validation.IsDNS1035Label(name); len(problems) > 0 {
		return wrongInput("%q is not a valid short name: use lower case letters, digits and '-'", name)
	}
	return nil
}
