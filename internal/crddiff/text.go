// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package crddiff

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// DefaultWidth is the width of the text if it is not known.
const DefaultWidth = 100

// Text writes differences for a terminal of a width: how many of each severity, and each with its place and meaning.
// Differences without effect are only counted, unless all are wanted.
func Text(to io.Writer, differences []Difference, width int, all bool) error {
	if width <= 0 {
		width = DefaultWidth
	}
	var text strings.Builder
	count := map[Severity]int{}
	for _, one := range differences {
		count[one.Severity]++
	}
	if len(differences) == 0 {
		text.WriteString("The CRDs do not differ.\n")
	} else {
		fmt.Fprintf(&text, "The CRDs differ: %d breaking, %d risky, %d compatible.\n", count[Breaking], count[Risky], count[Compatible])
	}
	for _, one := range differences {
		if one.Severity == Compatible && !all {
			continue
		}
		place := one.CRD
		if one.Version != "" {
			place += " " + one.Version
		}
		if one.Path != "" {
			place += " " + one.Path
		}
		fmt.Fprintf(&text, "\n%-10s  %s\n", one.Severity, place)
		for _, line := range wrap(one.Message, width-12) {
			fmt.Fprintf(&text, "%12s%s\n", "", line)
		}
	}
	if !all && count[Compatible] > 0 && count[Compatible] < len(differences) {
		fmt.Fprintf(&text, "\nCompatible differences are not listed.\n")
	}
	_, err := io.WriteString(to, text.String())
	return err
}

const ratcheting = "Kubernetes 1.30 and newer accept updates that leave an invalid field unchanged (ratcheting). " +
	"This is not assumed here: older servers refuse every update of these objects, and all servers refuse to recreate them."

// InvalidText writes the objects that no longer validate.
func InvalidText(to io.Writer, objects []Invalid, width int) error {
	if width <= 0 {
		width = DefaultWidth
	}
	if len(objects) == 0 {
		_, err := io.WriteString(to, "All objects validate.\n")
		return err
	}
	var text strings.Builder
	if len(objects) == 1 {
		text.WriteString("1 object no longer validates:\n")
	} else {
		fmt.Fprintf(&text, "%d objects no longer validate:\n", len(objects))
	}
	for _, one := range objects {
		fmt.Fprintf(&text, "\n%s (%s)\n", one.Name, one.Version)
		for _, problem := range one.Errors {
			for at, line := range wrap(problem, width-4) {
				fmt.Fprintf(&text, "%s%s\n", map[bool]string{true: "  - ", false: "    "}[at == 0], line)
			}
		}
	}
	text.WriteString("\n" + strings.Join(wrap(ratcheting, width), "\n") + "\n")
	_, err := io.WriteString(to, text.String())
	return err
}

// wrap breaks a text into lines at spaces.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
