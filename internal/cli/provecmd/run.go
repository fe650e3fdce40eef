// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package provecmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/dev"
	"github.com/opdock/opdock/internal/filewrite"
	"github.com/opdock/opdock/internal/hint"
	"github.com/opdock/opdock/internal/librarylog"
	"github.com/opdock/opdock/internal/prove/report"
	"github.com/opdock/opdock/prove"
)

const (
	// couldNotRun is the exit code if the operator could not be tried; 1 is for findings.
	couldNotRun = 2
	// pageWidth is how wide text is where nothing says how wide it can be.
	pageWidth = 110
)

func (a verbs) prove(ctx context.Context, o proveOptions, arguments []string) error {
	campaign, err := a.campaign(ctx, o, arguments)
	if err != nil {
		if errors.Is(err, context.Canceled) && ctx.Err() != nil {
			err = errors.New("interrupted before the first disturbed run, so nothing is known about the operator")
		}
		return errors.Join(a.explain(err), &cmdutil.ExitCodeError{Code: couldNotRun})
	}
	if err := a.show(o, campaign.Report); err != nil {
		return errors.Join(err, &cmdutil.ExitCodeError{Code: couldNotRun})
	}
	if o.page {
		if err := a.servePage(ctx, o); err != nil {
			return errors.Join(err, &cmdutil.ExitCodeError{Code: couldNotRun})
		}
	}
	switch code := campaign.Report.ExitCode(); code {
	case 0:
		return nil
	case couldNotRun:
		if o.replay != "" {
			return errors.Join(errors.New("the run could not be judged, so the finding may still be there"), &cmdutil.ExitCodeError{Code: code})
		}
		if campaign.Report.Broken != "" {
			return errors.Join(fmt.Errorf("the last runs broke down: %s", campaign.Report.Broken), &cmdutil.ExitCodeError{Code: code})
		}
		if campaign.Report.Interrupted {
			return errors.Join(errors.New("the campaign was interrupted, so the report is incomplete"), &cmdutil.ExitCodeError{Code: code})
		}
		return errors.Join(hint.With(errors.New("no disturbed run was judged, so nothing is known about the operator"),
			"give it more time, or other families: --budget, --families", "NOT TRIED in the report lists what was left out"), &cmdutil.ExitCodeError{Code: code})
	default:
		return &cmdutil.ExitCodeError{Code: code}
	}
}

func (a verbs) explain(err error) error {
	if errors.Is(err, prove.ErrNoSamples) {
		program := cmdutil.ShellQuote(a.Program)
		return hint.With(err, "write a scenario from the schemas of its CRDs: "+program+" prove --write-scenario prove.yaml",
			"check its values, and run it: "+program+" prove --scenario prove.yaml", "or add an object of each kind to config/samples")
	}
	var unknown *prove.UnknownFindingError
	if errors.As(err, &unknown) {
		switch {
		case unknown.Command != "":
			return hint.With(err, "run: "+unknown.Command)
		case len(unknown.Known) == 0:
			return hint.With(err, "run a campaign first: "+cmdutil.ShellQuote(a.Program)+" prove")
		}
	}
	var gone *prove.ScenarioGoneError
	if errors.As(err, &gone) {
		return hint.With(err, "say where it is now: --scenario FILE", "or run the campaign again: "+cmdutil.ShellQuote(a.Program)+" prove")
	}
	var ended *dev.EndedError
	if errors.As(err, &ended) && len(ended.Advice()) > 0 {
		return hint.With(err, ended.Advice()...)
	}
	if errors.As(err, new(*dev.NotServedError)) {
		return hint.With(err, "opdock gives the operator a certificate for its webhooks, or uses the one that the operator keeps in a Secret",
			"if the operator issues one in memory, turn that off by its flags or its configuration file: "+cmdutil.ShellQuote(a.Program)+" prove -- --config FILE")
	}
	return err
}

// campaign runs a campaign, or a part of the last one again.
func (a verbs) campaign(ctx context.Context, o proveOptions, arguments []string) (*prove.Campaign, error) {
	var notes []string
	found, err := a.FindProject(o.dir, &notes)
	if err != nil {
		return nil, err
	}
	librarylog.Discard()
	binary, err := a.ControlPlaneBinary(ctx, o.format != formatText)
	if err != nil {
		return nil, err
	}
	if o.replay == "" {
		// A project of the same name in another directory has its own campaigns.
		if err := a.RememberProject(a.ClusterNameFor(found), found); err != nil {
			return nil, err
		}
	}
	state := a.stateOf(found)
	last := filepath.Join(state, "last.json")
	d := a.NewDisplay(o.format != formatText)
	stop := d.Animate()
	defer stop()
	d.Title("Proving %s", found.Name)
	shown := progress{display: d, began: a.Now(), now: a.Now}
	say := func(text string) { d.Title("  %s", text) } // so that no running line is left above it
	if o.format != formatText {
		say = func(text string) { fmt.Fprintln(a.Err, "  "+text) } // the display is quiet
	}
	options := prove.Options{
		Dir: found.Dir, Main: o.main, Scenario: o.scenario, Arguments: arguments, Env: a.Env, Families: o.families, UpgradeFrom: o.from, UpgradeImage: o.image, Budget: o.budget, FailFast: o.failFast, Seed: o.seed, Parallel: o.parallel,
		StateDir: state, ControlPlane: binary, Progress: shown.show, Say: say,
	}
	if o.replay != "" {
		options.Replayed, options.Live = filepath.Join(state, replayedFile), func(line prove.Line) { a.tell(o, line) }
		campaign, err := a.again(ctx, options, last, o.replay)
		if err == nil {
			repeatable(campaign.Report, o, nil)
		}
		return campaign, err
	}
	options.Learned = filepath.Join(filepath.Dir(state), "recordings", learnedFile)
	campaign, err := prove.Run(ctx, options)
	if err != nil {
		return nil, err
	}
	shown.end()
	repeatable(campaign.Report, o, arguments)
	if err := campaign.Save(last); err != nil {
		fmt.Fprintf(a.Err, "Cannot keep the campaign, so --replay cannot show its findings: %v\n", err)
	}
	return campaign, nil
}

// again shows a finding of the last campaign.
func (a verbs) again(ctx context.Context, o prove.Options, last, id string) (*prove.Campaign, error) {
	before, err := prove.Open(last)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, hint.With(errors.New("there is no campaign of this project to replay"), "run one: opdock prove")
	}
	if err != nil {
		return nil, err
	}
	campaign, same, err := before.Replay(ctx, o, id)
	if err != nil {
		return nil, err
	}
	if !same {
		fmt.Fprintln(a.Err, "The operator has changed since the campaign: the finding may be fixed, or look different.")
	}
	return campaign, nil
}

// repeatable completes the commands that show findings again. The last campaign says what a replay runs, but not of which project;
// an upgrade is another campaign.
func repeatable(r *report.Report, o proveOptions, arguments []string) {
	var dir, rest string
	if o.dir != "" && o.dir != "." {
		dir = " --dir " + cmdutil.ShellQuote(o.dir)
	}
	if o.scenario != "" {
		rest += " --scenario " + cmdutil.ShellQuote(o.scenario)
	}
	if o.main != "" {
		rest += " --main " + cmdutil.ShellQuote(o.main)
	}
	if len(arguments) > 0 {
		quoted := make([]string, 0, len(arguments))
		for _, one := range arguments {
			quoted = append(quoted, cmdutil.ShellQuote(one))
		}
		rest += " -- " + strings.Join(quoted, " ")
	}
	for i := range r.Findings {
		f := &r.Findings[i]
		switch {
		case f.Replay == "":
		case f.Family == "upgrade":
			f.Replay += dir + rest
		default:
			f.Replay += dir
		}
	}
}

// progress shows how far a campaign is.
type progress struct {
	display *cmdutil.Display
	began   time.Time
	now     func() time.Time
	stage   string
}

func (p *progress) show(now prove.Progress) {
	if now.Stage != p.stage {
		p.end()
		p.stage, p.began = now.Stage, p.now()
	}
	if now.Planned == 0 {
		p.display.Run(now.Text)
		return
	}
	text := fmt.Sprintf("%d of %d runs, %d found, %s left", now.Ran, now.Planned, now.Found, now.Left.Round(time.Second))
	p.display.Run(text + ": " + now.Text)
}

// end says that a stage is over.
func (p *progress) end() {
	done := map[string]string{"building": "Built the operator", "learning": "Learned what it does undisturbed", "upgrading": "Upgraded and downgraded it", "disturbing": "Disturbed it"}[p.stage]
	if done != "" {
		p.display.Done(done, p.now().Sub(p.began))
	}
	p.stage = ""
}

// writerFor is what writes a report to a file of that name; nil for a name that says nothing.
func writerFor(path string) func(io.Writer, *report.Report) error {
	switch filepath.Ext(path) {
	case ".json":
		return report.JSON
	case ".xml":
		return report.JUnit
	case ".sarif":
		return report.SARIF
	case ".html":
		return report.HTML
	case ".txt":
		return text
	}
	return nil
}

// show prints the report, and writes the reports that were asked for. It prints first, because a disk that is full must not
// hide findings that took minutes.
func (a verbs) show(o proveOptions, r *report.Report) error {
	failed := []error{a.print(o.format, r)}
	for _, path := range o.reports {
		failed = append(failed, writeReport(path, r))
	}
	return errors.Join(failed...)
}

func (a verbs) print(format string, r *report.Report) error {
	switch format {
	case "json":
		return report.JSON(a.Out, r)
	case "junit":
		return report.JUnit(a.Out, r)
	case "sarif":
		return report.SARIF(a.Out, r)
	case "html":
		return report.HTML(a.Out, r)
	}
	return text(a.Out, r)
}

func text(w io.Writer, r *report.Report) error {
	var content bytes.Buffer
	report.Text(&content, r, pageWidth)
	_, err := w.Write(content.Bytes())
	return err
}

func writeReport(path string, r *report.Report) error {
	var content bytes.Buffer
	if err := writerFor(path)(&content, r); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := filewrite.Replace(path, content.Bytes(), 0o600); err != nil {
		return fmt.Errorf("writing the report %s: %w", path, err)
	}
	return nil
}
