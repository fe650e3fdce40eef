// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/opdock/opdock/internal/gomodule"
	"github.com/opdock/opdock/internal/hint"
)

const (
	shortCommit = 10
	mostTags    = 5
)

// checkOut writes the whole repository that a project belongs to, as it was at a ref, to a folder that does not exist yet. The whole
// of it, because go.mod may replace modules by other folders of the repository. It changes neither the work tree nor the index nor
// the list of work trees.
func checkOut(ctx context.Context, project, ref, to string) (*Release, error) {
	g := &git{dir: project}
	top, err := g.run(ctx, "rev-parse", "--show-toplevel")
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return nil, hint.With(fmt.Errorf("reading %s: the git command was not found on PATH", ref), "install git")
	case err != nil && ctx.Err() == nil:
		return nil, hint.With(fmt.Errorf("%s is not in a git repository, so there is no %s of it: %w", project, ref, err), "run git init, commit the project, and upgrade from that commit")
	case err != nil:
		return nil, err
	}
	prefix, err := g.run(ctx, "rev-parse", "--show-prefix")
	if err != nil {
		return nil, fmt.Errorf("finding the project in its repository: %w", err)
	}
	commit, err := g.run(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", ref+"^{commit}")
	if err != nil {
		return nil, g.unknown(ctx, ref)
	}
	if err := os.MkdirAll(to, 0o700); err != nil {
		return nil, fmt.Errorf("creating a directory for %s: %w", ref, err)
	}
	source := filepath.Join(to, "source")
	// A private index, and files below a private folder. Unlike git archive, this does not leave out what is marked export-ignore.
	private := &git{dir: top, env: []string{"GIT_INDEX_FILE=" + filepath.Join(to, "index")}}
	if _, err := private.run(ctx, "read-tree", commit); err != nil {
		return nil, fmt.Errorf("reading the files of %s: %w", ref, err)
	}
	if _, err := private.run(ctx, "checkout-index", "--all", "--prefix="+source+"/"); err != nil {
		return nil, fmt.Errorf("writing the files of %s: %w", ref, err)
	}
	r := &Release{Name: nameOf(ref, commit), Dir: filepath.Join(source, filepath.FromSlash(prefix))}
	if _, err := os.Stat(filepath.Join(r.Dir, gomodule.File)); err != nil {
		place := strings.TrimSuffix(prefix, "/")
		if place == "" {
			place = "its root"
		}
		return nil, fmt.Errorf("%s has no go.mod in %s: the project was elsewhere then, or did not exist", r.Name, place)
	}
	return r, nil
}

// nameOf is what people call a commit.
func nameOf(ref, commit string) string {
	if strings.HasPrefix(commit, ref) {
		return ref
	}
	return ref + " (" + commit[:min(len(commit), shortCommit)] + ")"
}

// git runs git commands in a folder.
type git struct {
	dir string
	env []string
}

func (g *git) run(ctx context.Context, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, "git", arguments...)
	command.Dir = g.dir
	// What a hook of git has set is about another repository or index. Locks that only save time are not taken.
	for _, setting := range os.Environ() {
		if !strings.HasPrefix(setting, "GIT_DIR=") && !strings.HasPrefix(setting, "GIT_INDEX_FILE=") && !strings.HasPrefix(setting, "GIT_WORK_TREE=") {
			command.Env = append(command.Env, setting)
		}
	}
	command.Env = append(append(command.Env, "GIT_OPTIONAL_LOCKS=0"), g.env...)
	var output, problem bytes.Buffer
	command.Stdout, command.Stderr = &output, &problem
	if err := command.Run(); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		if text := strings.TrimSpace(problem.String()); text != "" {
			return "", fmt.Errorf("git %s: %s", arguments[0], text)
		}
		return "", fmt.Errorf("git %s: %w", arguments[0], err)
	}
	return strings.TrimSuffix(output.String(), "\n"), nil
}

// unknown says what could be meant instead of a ref that the repository does not have.
func (g *git) unknown(ctx context.Context, ref string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	err := fmt.Errorf("the repository has no commit, tag or branch %q", ref)
	tags, failed := g.run(ctx, "tag", "--list", "--sort=-creatordate")
	names := strings.Fields(tags)
	if failed != nil || len(names) == 0 {
		return hint.With(err, "it has no tags; a clone may lack them: git fetch --tags --unshallow")
	}
	return hint.With(err, "its latest tags: "+strings.Join(names[:min(len(names), mostTags)], ", "), "if it is on the remote only: git fetch --tags")
}
