// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package provecmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/opdock/opdock/internal/hint"
	"github.com/opdock/opdock/internal/lensview"
	"github.com/opdock/opdock/internal/page"
	"github.com/opdock/opdock/internal/project"
	"github.com/opdock/opdock/internal/rights/granting"
	"github.com/opdock/opdock/prove"
)

const (
	// replayedFile is the recording of the last replay, in the state directory of campaigns.
	replayedFile = "replay.jsonl"
	// learnedFile is the recording of the undisturbed runs, among the recordings of the project.
	// There is only one, so campaigns do not displace the recordings of sessions.
	learnedFile = "prove.jsonl"
)

// stateOf is where campaigns of a project keep what they need.
func (a verbs) stateOf(found *project.Project) string {
	return filepath.Join(a.DevStateDir(a.ClusterNameFor(found)), "prove")
}

// tell prints the events of a replayed run.
func (a verbs) tell(o proveOptions, line prove.Line) {
	if o.format == formatText {
		fmt.Fprintln(a.Err, liveLine(line))
	}
}

// liveLine is as wide as it has to be: it is there to be read while it happens.
func liveLine(line prove.Line) string {
	mark, where := " ", ""
	text := strings.Map(func(r rune) rune { // anyone who can write objects can put the start of a colour into one
		if !unicode.IsPrint(r) {
			return '�'
		}
		return r
	}, line.Text)
	if line.Fault {
		mark = "!"
	}
	if line.Where != "" {
		where = "  at " + line.Where
	}
	return fmt.Sprintf("  %s %8.3fs  %s%s", mark, line.At.Seconds(), text, where)
}

// servePage shows the run that was replayed until the user interrupts it.
func (a verbs) servePage(ctx context.Context, o proveOptions) error {
	var notes []string
	found, err := a.FindProject(o.dir, &notes)
	if err != nil {
		return err
	}
	path := filepath.Join(a.stateOf(found), replayedFile)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return errors.New("the run was not recorded: it broke down before the operator started")
	}
	options, _, err := lensview.Open(path, func(ctx context.Context) (*granting.Grants, error) { return granting.Read(ctx, found, granting.Auto) }, found.Name)
	if err != nil {
		return err
	}
	options.Title, options.Address = "replay of "+o.replay, o.address
	running, err := page.Start(options)
	if err != nil {
		return hint.With(err, "choose another address with --page-address")
	}
	defer running.Close()
	fmt.Fprintf(a.Out, "\nPage: %s (press Ctrl-C to stop)\n", running.URL())
	<-ctx.Done()
	return nil
}
