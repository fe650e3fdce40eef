// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opdock/opdock/internal/prove/engine"
)

// Campaign is a completed campaign. It can be saved to a file, and its findings can be replayed.
type Campaign struct {
	Report *Report `json:"report"`
	// Plans are the runs that show the findings, by the ID of the finding.
	Plans map[string]*engine.Plan `json:"plans,omitempty"`
	// Digest identifies the build of the operator.
	Digest string `json:"digest"`
	// Setup is what the campaign ran.
	Setup Setup `json:"setup"`
}

// Save writes the campaign to a file that only its owner can read: findings hold fields of objects.
func (c *Campaign) Save(path string) error {
	encoded, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the campaign: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("saving the campaign: %w", err)
	}
	next := path + ".next"
	if err := os.WriteFile(next, append(encoded, '\n'), 0o600); err != nil {
		return errors.Join(fmt.Errorf("saving the campaign: %w", err), ignoreMissing(os.Remove(next)))
	}
	if err := os.Rename(next, path); err != nil {
		return fmt.Errorf("saving the campaign: %w", err)
	}
	return nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Open reads a campaign that was saved.
func Open(path string) (*Campaign, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading a campaign: %w", err)
	}
	var c Campaign
	if err := json.Unmarshal(content, &c); err != nil || c.Report == nil {
		return nil, fmt.Errorf("%s is not a campaign, or is cut off: run opdock prove again", path)
	}
	return &c, nil
}

// UnknownFindingError is an ID that a campaign does not have, or cannot replay.
type UnknownFindingError struct {
	ID    string
	Known []string
	// Command shows the finding again, if the campaign has it but no single disturbance leads to it, as for an upgrade.
	Command string
}

func (e *UnknownFindingError) Error() string {
	if e.Command != "" {
		return e.ID + " is not the result of one disturbance, so it cannot be replayed alone"
	}
	if len(e.Known) == 0 {
		return fmt.Sprintf("the last campaign has no finding %q, nor any other that can be replayed", e.ID)
	}
	return fmt.Sprintf("the last campaign has no finding %q; it has %s", e.ID, strings.Join(e.Known, ", "))
}

// Replay runs only the disturbance of a finding again, with the scenario, main package and arguments of the campaign
// where the options name no others. The result shows whether the operator was built from the same code.
func (c *Campaign) Replay(ctx context.Context, o Options, id string) (again *Campaign, same bool, err error) {
	plan, found := c.Plans[id]
	if !found {
		known := make([]string, 0, len(c.Plans))
		for one := range c.Plans {
			known = append(known, one)
		}
		slices.Sort(known)
		unknown := &UnknownFindingError{ID: id, Known: known}
		if c.Report != nil {
			for i := range c.Report.Findings {
				if one := &c.Report.Findings[i]; one.ID == id {
					unknown.Command = cmp.Or(one.Replay, "opdock prove")
				}
			}
		}
		return nil, false, unknown
	}
	if again, err = run(ctx, o, &replayed{plan, c.Setup}); err != nil {
		return nil, false, err
	}
	return again, again.Digest == c.Digest, nil
}
