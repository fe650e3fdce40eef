// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/opdock/opdock/internal/page"
	"github.com/opdock/opdock/internal/page/demo"
	"github.com/opdock/opdock/internal/testenv"
	"github.com/opdock/opdock/test/browser/chromium"
)

// shared is one browser for all tests, each of which has windows of its own in it.
var shared *chromium.Browser

func TestMain(m *testing.M) {
	code := m.Run()
	if shared != nil {
		shared.Close()
	}
	testenv.RemoveProgram()
	os.Exit(code)
}

// look opens a page and fails the test if the page complains, or asks others than its server for anything.
func look(t *testing.T, address string, o chromium.Options) *chromium.Page {
	t.Helper()
	if chromium.Find() == "" {
		t.Skip("there is no Chromium to test the page with; on Debian: apt-get install chromium")
	}
	if o.Width == 0 {
		o.Width, o.Height = 1440, 900
	}
	if shared == nil {
		browser, err := chromium.Start(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		shared = browser
	}
	p, err := shared.Open(address, o)
	if err != nil {
		shared.Close()
		shared = nil // the next test gets another one
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, problem := range p.Problems() {
			t.Errorf("the page: %s", problem)
		}
		p.Close()
	})
	return p
}

// start serves a page.
func start(t *testing.T, o page.Options) *page.Running {
	t.Helper()
	running, err := page.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { running.Close() })
	return running
}

// lookAt shows a made-up world in which the stories have happened, each written as "story name".
func lookAt(t *testing.T, world *demo.World, stories ...string) *chromium.Page {
	t.Helper()
	tell(t, world, stories...)
	p := look(t, start(t, page.Options{Title: "made-up fleet", Tree: world.Model, Records: world.Endpoint, Findings: world.Endpoint.Findings}).URL(), chromium.Options{})
	await(t, p, "globalThis.opdock && opdock.forest.nodes.size > 0")
	if len(stories) > 0 {
		await(t, p, "opdock.list.rows.items.length > 0 && opdock.timeline.painter.drawn.passes > 0")
	}
	return p
}

func tell(t *testing.T, world *demo.World, stories ...string) {
	t.Helper()
	for _, story := range stories {
		what, whom, _ := strings.Cut(story, " ")
		if err := world.Tell(what, whom, time.Now().Add(-time.Second)); err != nil {
			t.Fatal(err)
		}
	}
}

func await(t *testing.T, p *chromium.Page, expression string) {
	t.Helper()
	if err := p.Await(expression); err != nil {
		t.Fatal(err)
	}
}

func do(t *testing.T, p *chromium.Page, statements string) {
	t.Helper()
	if err := p.Do(statements); err != nil {
		t.Fatal(err)
	}
}

// press presses keys wherever the focus is.
func press(t *testing.T, p *chromium.Page, keys string) {
	t.Helper()
	if err := p.Press(keys); err != nil {
		t.Fatal(err)
	}
}

func get[T any](t *testing.T, p *chromium.Page, expression string) T {
	t.Helper()
	value, err := chromium.Get[T](p, expression)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// text is what is read in an element.
func text(t *testing.T, p *chromium.Page, id string) string {
	t.Helper()
	return get[string](t, p, "document.getElementById('"+id+"').innerText")
}

// expect fails the test for each of the texts that an element does not have.
func expect(t *testing.T, p *chromium.Page, id string, wanted ...string) {
	t.Helper()
	got := text(t, p, id)
	for _, want := range wanted {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %s:\n%s", want, id, got)
		}
	}
}

// startDemo serves a made-up world and returns where.
func startDemo(t *testing.T, world *demo.World) string {
	t.Helper()
	return start(t, page.Options{Title: "made-up fleet", Tree: world.Model, Records: world.Endpoint, Findings: world.Endpoint.Findings}).URL()
}

func quote(s string) string { return strconv.Quote(s) }

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
