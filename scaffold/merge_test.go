// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import "testing"

func TestMergeEdited(t *testing.T) {
	const (
		old  = "package a\n\nimport \"x\"\n\n// Setup sets up.\nfunc Setup() {\n\tx.Do()\n}\n\nfunc validate() error {\n\treturn nil\n}\n"
		next = "package a\n\nimport \"x\"\n\n// Setup sets up. Conversion as well.\nfunc Setup() {\n\tx.Do()\n}\n\nfunc validate() error {\n\treturn nil\n}\n\nfunc convert() {}\n"
	)
	for name, test := range map[string]struct {
		edited, want string // no want: it is refused
	}{
		"not at all": {old, next},
		"elsewhere": {
			"package a\n\nimport \"x\"\n\n// Setup sets up.\nfunc Setup() {\n\tx.Do()\n}\n\nfunc validate() error {\n\treturn x.Check()\n}\n",
			"package a\n\nimport \"x\"\n\n// Setup sets up. Conversion as well.\nfunc Setup() {\n\tx.Do()\n}\n\nfunc validate() error {\n\treturn x.Check()\n}\n\nfunc convert() {}\n",
		},
		"elsewhere, not beside": {
			"package a\n\nimport \"x\"\n\n// Setup sets up.\nfunc Setup() {\n\tx.Do()\n}\n\nfunc helper() {}\n\nfunc validate() error {\n\treturn nil\n}\n",
			"package a\n\nimport \"x\"\n\n// Setup sets up. Conversion as well.\nfunc Setup() {\n\tx.Do()\n}\n\nfunc helper() {}\n\nfunc validate() error {\n\treturn nil\n}\n\nfunc convert() {}\n",
		},
		"the same line": {
			"package a\n\nimport \"x\"\n\n// Setup does everything.\nfunc Setup() {\n\tx.Do()\n}\n\nfunc validate() error {\n\treturn nil\n}\n", "",
		},
		"it is no Go any more": {old + "func {\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := mergeEdited("a.go", []byte(old), []byte(next), []byte(test.edited))
			if ok != (test.want != "") || ok && string(got) != test.want {
				t.Errorf("got %t\n%s", ok, got)
			}
		})
	}
	if !sameCode([]byte("// a\nx\n"), []byte("\t// b\nx\n")) || sameCode([]byte("x\n"), []byte("y\n")) {
		t.Error("only comments may differ")
	}
}
