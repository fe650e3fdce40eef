// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/opdock/opdock/internal/prove/compare"
	"github.com/opdock/opdock/internal/prove/engine"
	"github.com/opdock/opdock/internal/prove/scenario"
)

// Setup is what a campaign ran: a finding shows again only with the same scenario, main package and arguments. The
// environment is not part of it, because it may hold credentials.
type Setup struct {
	// Scenario is the absolute path of the scenario's file; empty for the samples, and for steps in code.
	Scenario string `json:"scenario,omitempty"`
	InCode   bool   `json:"inCode,omitempty"`
	// ScenarioDigest identifies the steps and how they are judged, wherever they come from.
	ScenarioDigest string   `json:"scenarioDigest,omitempty"`
	Main           string   `json:"main,omitempty"`
	Arguments      []string `json:"arguments,omitempty"`
}

// replayed is a plan to run alone, and the setup of the campaign that it is from.
type replayed struct {
	plan  *engine.Plan
	setup Setup
}

// ScenarioGoneError is a scenario that a campaign ran, and that is not there any more.
type ScenarioGoneError struct{ Path string }

func (e *ScenarioGoneError) Error() string {
	return fmt.Sprintf("the scenario of the campaign, %s, is gone", e.Path)
}

// ErrStepsInCode is returned for a replay without the steps of its campaign.
var ErrStepsInCode = errors.New("the steps of the campaign are in code: replay it with the same steps")

// complete adds to options what the campaign ran with, unless they say it themselves.
func (s *Setup) complete(o Options) (Options, error) {
	if s.InCode && len(o.Steps) == 0 && o.Scenario == "" {
		return o, ErrStepsInCode
	}
	if o.Scenario == "" && len(o.Steps) == 0 && s.Scenario != "" {
		if _, err := os.Stat(s.Scenario); errors.Is(err, fs.ErrNotExist) {
			return o, &ScenarioGoneError{Path: s.Scenario}
		}
		o.Scenario = s.Scenario
	}
	if o.Main == "" {
		o.Main = s.Main
	}
	if len(o.Arguments) == 0 {
		o.Arguments = slices.Clone(s.Arguments)
	}
	return o, nil
}

// setupOf is what these options run.
func setupOf(o *Options, s *scenario.Scenario) (Setup, error) {
	setup := Setup{ScenarioDigest: digestOf(s), InCode: len(o.Steps) > 0, Main: o.Main, Arguments: o.Arguments}
	if o.Scenario != "" {
		path, err := filepath.Abs(o.Scenario)
		if err != nil {
			return setup, fmt.Errorf("finding the scenario: %w", err)
		}
		setup.Scenario = path
	}
	return setup, nil
}

// digestOf is the same for scenarios that do the same, whatever the comments in their files say.
func digestOf(s *scenario.Scenario) string {
	plain := scenario.Scenario{Steps: slices.Clone(s.Steps), Ignore: s.Ignore, Settle: s.Settle}
	for i := range plain.Steps {
		plain.Steps[i].Line = 0
	}
	encoded, err := json.Marshal(plain)
	if err != nil {
		return "" // as if it were unknown: the objects were read from JSON or YAML, so this does not happen
	}
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:8])
}

// textsOf are the addresses and times in a scenario.
func textsOf(s *scenario.Scenario) (texts []string) {
	for i := range s.Steps {
		step := &s.Steps[i]
		if step.Apply != nil {
			for _, object := range step.Apply.Objects {
				texts = append(texts, compare.Texts(object.Object)...)
			}
		}
		for _, patch := range step.Patch {
			texts = append(texts, compare.Texts(patch.Merge)...)
			for _, operation := range patch.JSON {
				texts = append(texts, compare.Texts(operation.Value)...)
			}
		}
	}
	slices.Sort(texts)
	return slices.Compact(texts)
}

// isOther reports whether a scenario is not the one of the campaign.
func (s *Setup) isOther(now *Setup) bool {
	return s.ScenarioDigest != "" && now.ScenarioDigest != "" && s.ScenarioDigest != now.ScenarioDigest
}
