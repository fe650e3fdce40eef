// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
)

func TestVersionThatOthersCanDownload(t *testing.T) {
	own := func(version string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Path: opdockModule, Version: version}, Settings: settings}
	}
	with := func(dependency *debug.Module) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Path: "example.com/other", Version: "v9.0.0"}, Deps: []*debug.Module{{Path: "example.com/x"}, dependency}}
	}
	commit := debug.BuildSetting{Key: "vcs.revision", Value: "0123456789abcdef"}
	for name, test := range map[string]struct {
		info *debug.BuildInfo
		want string
	}{
		"installed":                 {own("v1.2.3"), "v1.2.3"},
		"installed from a commit":   {own("v0.0.0-20261117030405-0123456789ab"), "v0.0.0-20261117030405-0123456789ab"},
		"built in a repository":     {own("v1.2.3", commit), ""},
		"built from changed files":  {own("v1.2.3+dirty"), ""},
		"built without a version":   {own("(devel)"), ""},
		"tested":                    {own(""), ""},
		"a dependency":              {with(&debug.Module{Path: opdockModule, Version: "v1.2.3"}), "v1.2.3"},
		"a replaced dependency":     {with(&debug.Module{Path: opdockModule, Version: "v1.2.3", Replace: &debug.Module{Path: "../opdock"}}), ""},
		"not a part of the program": {with(&debug.Module{Path: "example.com/y", Version: "v1.2.3"}), ""},
	} {
		if got := versionIn(test.info); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// The campaign is a module of its own: the project does not depend on Opdock.
func TestOnlyTheCampaignRequiresOpdock(t *testing.T) {
	for version, want := range map[string]string{
		"": "module example.com/yard/test/prove\n\ngo 1.26.0\n\n// Go adds the latest version of github.com/opdock/opdock. To use a working copy instead:\n" +
			"// go -C test/prove mod edit -replace github.com/opdock/opdock=DIRECTORY\n",
		"v1.2.3": "module example.com/yard/test/prove\n\ngo 1.26.0\n\nrequire github.com/opdock/opdock v1.2.3\n",
	} {
		dir := t.TempDir()
		options := inits(dir)
		options.OpdockVersion = version
		must(t)(Init(options))
		must(t)(CreateAPI(frigate(dir)))
		for name, content := range snapshot(t, dir) {
			if strings.HasPrefix(name, "test/prove/") || strings.HasSuffix(name, "/") {
				continue
			}
			if strings.HasSuffix(name, ".go") || filepath.Base(name) == goModFile || filepath.Base(name) == goSumFile {
				if strings.Contains(content, opdockModule) {
					t.Errorf("%s names %s", name, opdockModule)
				}
			}
		}
		content, err := os.ReadFile(filepath.Join(dir, "test", "prove", goModFile))
		if err != nil || string(content) != want {
			t.Errorf("%q: %v; got\n%swant\n%s", version, err, content, want)
		}
	}
}
