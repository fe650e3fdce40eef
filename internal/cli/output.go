// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/opdock/opdock/cluster"
)

// outputFormat is the value of the -o flag.
type outputFormat string

const (
	outputText outputFormat = "text"
	outputJSON outputFormat = "json"
)

var outputFormats = []string{string(outputText), string(outputJSON)}

func (f *outputFormat) String() string { return string(*f) }
func (f *outputFormat) Type() string   { return "format" }

func (f *outputFormat) Set(value string) error {
	if !slices.Contains(outputFormats, value) {
		return fmt.Errorf("there is only %s", strings.Join(outputFormats, " and "))
	}
	*f = outputFormat(value)
	return nil
}

func (a *App) addOutputFlag(cmd *cobra.Command, format *outputFormat) {
	*format = outputText
	cmd.Flags().VarP(format, "output", "o", "output format: "+strings.Join(outputFormats, " or "))
	a.complete(cmd, "output", func() []string { return outputFormats })
}

func (a *App) printJSON(value any) error {
	encoder := json.NewEncoder(a.Out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// stateWord is a state as it stands in a sentence.
func stateWord(s cluster.State) string {
	switch s {
	case cluster.Alive:
		return "alive"
	case cluster.Dead:
		return "dead"
	case cluster.Stopped:
		return "stopped"
	case cluster.NeverStarted:
		return "never started"
	default:
		return string(s)
	}
}

// when is a point in time together with how long ago that was; nothing if it is not known.
func (a *App) when(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return fmt.Sprintf("%s, %s", t.In(a.Now().Location()).Format("2006-01-02 15:04:05"), a.ago(t))
}

// ago is how long ago that was; nothing if it is not known.
func (a *App) ago(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	since := max(a.Now().Sub(t), 0)
	switch {
	case since < time.Minute:
		return since.Round(time.Second).String() + " ago"
	case since < time.Hour:
		return fmt.Sprintf("%dm ago", since/time.Minute)
	case since < 48*time.Hour:
		return fmt.Sprintf("%dh ago", since/time.Hour)
	default:
		return fmt.Sprintf("%dd ago", since/(24*time.Hour))
	}
}
