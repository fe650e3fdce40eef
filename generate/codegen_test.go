// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"
)

func thisYear() string { return strconv.Itoa(time.Now().UTC().Year()) }

var moduleLine = regexp.MustCompile(`(?m)^module (\S+)$`)

// module is the import path of the module.
func (u upstream) module() string {
	u.t.Helper()
	content, err := os.ReadFile(filepath.Join(u.dir, "go.mod"))
	if err != nil {
		u.t.Fatal(err)
	}
	return moduleLine.FindStringSubmatch(string(content))[1]
}

func (u upstream) packages(dirs ...string) []string {
	module := u.module()
	var paths []string
	for _, dir := range dirs {
		paths = append(paths, module+"/"+dir)
	}
	return paths
}

// clients is gen_client of kube_codegen.sh with --with-watch and --with-applyconfig. The groups are relative to the input,
// which is empty or ends with a slash.
func (u upstream) clients(out, input string, applyOnly, groups []string, extra ...string) {
	u.t.Helper()
	pkg := u.module() + "/" + out
	var packages, inputs []string
	for _, group := range groups {
		packages = append(packages, u.packages(input+group)...)
		inputs = append(inputs, "--input", group)
	}
	common := func(part string) []string {
		return []string{"--go-header-file", header, "--output-dir", out + "/" + part, "--output-pkg", pkg + "/" + part}
	}
	u.run("applyconfiguration-gen", slices.Concat(common(applyPart), packages, u.packages(applyOnly...))...)
	u.run("client-gen", slices.Concat(common(clientsetPart), []string{
		"--clientset-name", versionedClientset, "--apply-configuration-package", pkg + "/" + applyPart, "--input-base", filepath.Join(u.dir, input),
	}, inputs, extra)...)
	u.run("lister-gen", slices.Concat(common(listersPart), extra, packages)...)
	u.run("informer-gen", slices.Concat(common(informersPart), []string{
		"--versioned-clientset-package", pkg + "/" + clientsetPart + "/" + versionedClientset, "--listers-package", pkg + "/" + listersPart,
	}, extra, packages)...)
}

// openAPI is gen_openapi of kube_codegen.sh.
func (u upstream) openAPI(out string, packages ...string) {
	u.t.Helper()
	u.run("openapi-gen", slices.Concat([]string{
		"--go-header-file", header, "--output-file", openAPIFile, "--output-dir", out, "--output-pkg", u.module() + "/" + out,
		"--report-filename", filepath.Join(u.t.TempDir(), "report"),
	}, openAPIBase, packages)...)
}
