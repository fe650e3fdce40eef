// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

const document = "../docs/scaffold.md"

// between exchanges what stands between two comments of a document.
func between(t *testing.T, text, name, content string) string {
	t.Helper()
	begin := "<!-- " + name + " -->\n"
	before, rest, found := strings.Cut(text, begin)
	_, after, ended := strings.Cut(rest, "<!-- end -->")
	if !found || !ended {
		t.Fatalf("%s has no place for the %s", document, name)
	}
	return before + begin + content + "<!-- end -->" + after
}

// TestTheDocumentShowsWhatIsMade compares with the templates. With -update it writes the document.
func TestTheDocumentShowsWhatIsMade(t *testing.T) {
	dir := t.TempDir()
	must(t)(Init(inits(dir)))
	must(t)(CreateAPI(frigate(dir)))
	must(t)(CreateWebhook(WebhookOptions{Dir: dir, Group: "ship", Version: "v1", Kind: "Frigate", Defaulting: true}))
	files := snapshot(t, dir)
	for _, generated := range []string{"api/v1/zz_generated.deepcopy.go", "config/crd/bases/", "config/crd/bases/ship.example.com_frigates.yaml", "config/webhook/manifests.yaml"} {
		files[generated] = ""
	}
	delete(files, "/")
	content, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	table.WriteString("| name | what it is |\n|---|---|\n")
	starters, err := Starters()
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range starters {
		fmt.Fprintf(&table, "| %s | %s |\n", one.Name, one.Description)
	}
	want := between(t, string(content), "tree", "```text\n"+drawTree(files)+"```\n")
	want = between(t, want, "starters", table.String())
	if *update {
		if err := os.WriteFile(document, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != string(content) {
		t.Errorf("%s is out of date: run this test with -update", document)
	}
}

// drawTree lists each folder with its files, in few lines.
func drawTree(files map[string]string) string {
	byFolder := map[string][]string{}
	for name := range files {
		if !strings.HasSuffix(name, "/") {
			byFolder[path.Dir(name)] = append(byFolder[path.Dir(name)], path.Base(name))
		}
	}
	var out bytes.Buffer
	for _, folder := range slices.Sorted(maps.Keys(byFolder)) {
		names := byFolder[folder]
		slices.Sort(names)
		line := fmt.Sprintf("%-22s", folder+"/")
		for _, name := range names {
			if len(line)+len(name) > 125 {
				out.WriteString(strings.TrimRight(line, " ") + "\n")
				line = strings.Repeat(" ", 22)
			}
			line += "  " + name
		}
		out.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return out.String()
}
