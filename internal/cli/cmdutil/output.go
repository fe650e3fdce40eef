// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/opdock/opdock/cluster"
)

// OutputFormat is the value of the -o flag.
type OutputFormat string

// The formats of output.
const (
	OutputText OutputFormat = "text"
	OutputJSON OutputFormat = "json"
)

// OutputFormats are the values of the flag --output.
var OutputFormats = []string{string(OutputText), string(OutputJSON)}

func (f *OutputFormat) String() string { return string(*f) }

// Type implements pflag.Value.
func (f *OutputFormat) Type() string { return "format" }

// Set implements pflag.Value.
func (f *OutputFormat) Set(value string) error {
	if !slices.Contains(OutputFormats, value) {
		return fmt.Errorf("must be %s", strings.Join(OutputFormats, " or "))
	}
	*f = OutputFormat(value)
	return nil
}

// AddOutputFlag adds the flag --output, with completion.
func (a *App) AddOutputFlag(cmd *cobra.Command, format *OutputFormat) {
	*format = OutputText
	cmd.Flags().VarP(format, "output", "o", "output format: "+strings.Join(OutputFormats, " or "))
	a.Complete(cmd, "output", func() []string { return OutputFormats })
}

// PrintJSON writes a value to standard output as indented JSON.
func (a *App) PrintJSON(value any) error {
	encoder := json.NewEncoder(a.Out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// StateWord is a state as it stands in a sentence.
func StateWord(s cluster.State) string {
	switch s {
	case cluster.Alive:
		return "alive"
	case cluster.Dead:
		return "dead"
	case cluster.Stopped:
		return "stopped"
	case cluster.Incomplete:
		return "incomplete"
	case cluster.NeverStarted:
		return "never started"
	default:
		return string(s)
	}
}

// When is a point in time together with how long ago that was; nothing if it is not known.
func (a *App) When(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return fmt.Sprintf("%s, %s", t.In(a.Now().Location()).Format("2006-01-02 15:04:05"), a.Ago(t))
}

// Ago is how long ago that was; nothing if it is not known.
func (a *App) Ago(t time.Time) string {
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
