// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package whycmd

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/hint"
	"github.com/opdock/opdock/internal/page"
	"github.com/opdock/opdock/internal/project"
)

// findEndpoint finds the endpoint with the records: the given address, the page of opdock dev
// in this folder, or the pages of a cluster.
func (a verbs) findEndpoint(o whyOptions, named bool) (*whyEndpoint, error) {
	if o.address != "" {
		address := strings.TrimSuffix(strings.TrimSuffix(o.address, "/"), "/why")
		return &whyEndpoint{address: address, absent: hint.With(fmt.Errorf("no response from %s", o.address),
			"records are served by a manager with --why-bind-address, and by the page of opdock run and opdock dev")}, nil
	}
	if named || a.Getenv(cmdutil.ClusterVariable) != "" {
		return a.endpointOfCluster(o.name)
	}
	pages, err := a.pagesOfThisFolder()
	if err != nil {
		return nil, err
	}
	if len(pages) > 0 {
		return endpointOf(pages, fmt.Errorf("no response from the page of the operator in %s", pages[0].Project)), nil
	}
	here, err := project.Find(".")
	if err != nil {
		return a.endpointOfCluster(o.name)
	}
	if !a.WasDeveloped(here) {
		// Any Go module can be a project, so controllers that do run are still shown.
		if endpoint, err := a.endpointOfCluster(o.name); err == nil {
			return endpoint, nil
		}
	}
	return nil, a.notDeveloped(here)
}

// endpointOfCluster finds the pages of a cluster.
func (a verbs) endpointOfCluster(name string) (*whyEndpoint, error) {
	status, err := a.Dock.Find(name)
	if err != nil {
		return nil, err
	}
	if status.State != cluster.Alive {
		return nil, &cluster.NotRunningError{Status: status}
	}
	pages, killed, err := page.Find(status.Dir)
	if err != nil {
		return nil, err
	}
	who := "neither opdock run nor opdock dev is using cluster %q"
	if killed {
		who += ": the last one was killed"
	}
	absent := hint.With(fmt.Errorf(who, name), "run the fleet: "+a.Command("run", name), "or run your operator, in its directory: "+a.Command("dev", name),
		"or set the address of your controllers: "+a.Command("why", a.DefaultName(), "--address", "URL"))
	if len(pages) == 0 {
		return nil, absent
	}
	return endpointOf(pages, absent), nil
}

// notDeveloped returns an error that the operator of this folder is not running, instead of
// using an unrelated cluster.
func (a verbs) notDeveloped(found *project.Project) error {
	program := cmdutil.ShellQuote(a.Program)
	hints := []string{"start it: " + program + " dev"}
	if recording := a.lastRecording(found); recording != "" {
		hints = append(hints, "or look at the last recording: "+program+" trace --open "+cmdutil.ShellQuote(recording)+" --page")
	}
	others := a.clustersWithPages()
	if len(others) == 0 {
		others = []string{"NAME"}
	}
	for _, name := range others {
		hints = append(hints, "or select another cluster: "+program+" why --name "+name)
	}
	return hint.With(fmt.Errorf("opdock dev is not running in %s", found.Dir), append(hints, "or set the address of your controllers: "+program+" why --address URL")...)
}

// clustersWithPages returns the clusters that opdock run or opdock dev uses.
func (a verbs) clustersWithPages() (names []string) {
	all, _ := a.Dock.List() // for a hint, what can be read is enough
	for _, one := range all {
		if pages, _, err := page.Find(one.Dir); err == nil && one.State == cluster.Alive && len(pages) > 0 {
			names = append(names, one.Name)
		}
	}
	return names
}

// lastRecording returns what opdock dev, rbac or trace recorded last for a project; empty if there is nothing.
func (a verbs) lastRecording(found *project.Project) string {
	if !a.WasDeveloped(found) {
		return ""
	}
	// Their names begin with the time. The recording of opdock prove lies beside them.
	recordings, err := filepath.Glob(filepath.Join(a.DevStateDir(a.ClusterNameFor(found)), "recordings", "[0-9]*.jsonl"))
	if err != nil || len(recordings) == 0 {
		return ""
	}
	return slices.Max(recordings)
}

func endpointOf(pages []page.File, absent error) *whyEndpoint {
	e := &whyEndpoint{address: pages[0].Address, absent: absent}
	for _, other := range pages[1:] {
		e.others = append(e.others, other.Address)
	}
	return e
}

// pagesOfThisFolder returns the pages of opdock dev for the project of the current folder, on any cluster.
func (a verbs) pagesOfThisFolder() ([]page.File, error) {
	here, err := os.Getwd()
	if err == nil {
		here, err = filepath.EvalSymlinks(here) // as projects are called
	}
	if err != nil {
		return nil, fmt.Errorf("finding the current directory: %w", err)
	}
	clusters, err := a.Dock.List()
	if err != nil {
		return nil, err
	}
	dirs, err := filepath.Glob(a.DevStateDir("*"))
	if err != nil {
		return nil, fmt.Errorf("finding pages: %w", err)
	}
	for _, one := range clusters {
		dirs = append(dirs, one.Dir)
	}
	var about []page.File
	for _, dir := range dirs {
		pages, _, err := page.Find(dir)
		if err != nil {
			return nil, err
		}
		for _, one := range pages {
			if one.Project != "" && isBelow(here, one.Project) {
				about = append(about, one)
			}
		}
	}
	slices.SortFunc(about, func(x, y page.File) int { return y.Started.Compare(x.Started) })
	return about, nil
}

// isBelow reports whether a folder is another one, or inside it.
func isBelow(dir, above string) bool {
	relative, err := filepath.Rel(above, dir)
	return err == nil && relative != ".." && !strings.HasPrefix(relative, ".."+string(filepath.Separator))
}
