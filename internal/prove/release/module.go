// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/opdock/opdock/internal/gocommand"
	"github.com/opdock/opdock/internal/hint"
)

// versioned matches a version of a Go module. Git's own refs with an @, such as HEAD@{1}, and tags such as web@v1.2.0 are
// different: the first element of a module's path has a dot.
var versioned = regexp.MustCompile(`^((?:[a-z0-9-]+\.)+[a-z0-9-]+/[^@\s]+|)@(v[0-9]\S*|latest)$`)

func moduleVersion(release string) (module, version string, ok bool) {
	match := versioned.FindStringSubmatch(release)
	if match == nil {
		return "", "", false
	}
	return match[1], match[2], true
}

// download copies a version of a module from Go's module cache, after go has downloaded it if it has to. The cache itself is
// read-only, and not a place to build in.
func (p Project) download(ctx context.Context, module, version, to string) (*Release, error) {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return nil, fmt.Errorf("creating a directory for %s: %w", version, err)
	}
	command := gocommand.Command(ctx, to, p.Env, "mod", "download", "-json", module+"@"+version)
	var output, problem bytes.Buffer
	command.Stdout, command.Stderr = &output, &problem
	failed := command.Run()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	var found struct{ Version, Dir, Error string }
	if err := json.Unmarshal(output.Bytes(), &found); err != nil {
		found.Error = strings.TrimSpace(problem.String())
	}
	switch {
	case failed != nil && found.Error == "":
		return nil, fmt.Errorf("downloading %s@%s: %w", module, version, failed)
	case found.Error != "" || found.Dir == "":
		return nil, hint.With(fmt.Errorf("downloading %s@%s: %s", module, version, found.Error), "the versions that there are: go list -m -versions "+module)
	}
	source := filepath.Join(to, "source")
	if err := os.CopyFS(source, os.DirFS(found.Dir)); err != nil {
		return nil, fmt.Errorf("copying %s@%s: %w", module, found.Version, err)
	}
	r, err := open(source)
	if err != nil {
		return nil, fmt.Errorf("%s@%s: %w", module, found.Version, err)
	}
	r.Name = module + "@" + found.Version
	if module == p.Module {
		r.Name = found.Version
	}
	return r, nil
}
