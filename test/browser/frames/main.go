// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Command frames measures how evenly the page draws while a fleet is busy, and prints it as JSON. The fleet is made up, by
// a process of its own, so that what is measured is the browser.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/opdock/opdock/internal/page"
	"github.com/opdock/opdock/internal/page/demo"
	"github.com/opdock/opdock/test/browser/chromium"
)

// Result is what was measured. Times are in milliseconds.
type Result struct {
	Objects         int     `json:"objects"`
	EventsPerSecond int     `json:"eventsPerSecond"`
	Seconds         float64 `json:"seconds"`
	Frames          int     `json:"frames"`
	FramesPerSecond float64 `json:"framesPerSecond"`
	// OnTime is the share of frames that came within 1.5 frames' time of the one before: none was left out in between.
	OnTime  float64 `json:"onTime"`
	P50     float64 `json:"p50"`
	P99     float64 `json:"p99"`
	Longest float64 `json:"longest"`
	// Work is how long the page's own code took in a frame.
	WorkP50 float64 `json:"workP50"`
	WorkP99 float64 `json:"workP99"`
	WorkMax float64 `json:"workMax"`
	// LongTasks are those that took more than 50 ms.
	LongTasks int `json:"longTasks"`
	// Idle is what an empty page reaches in the same browser: how even this machine is at all.
	IdleFramesPerSecond float64 `json:"idleFramesPerSecond"`
	IdleOnTime          float64 `json:"idleOnTime"`
	Reconciles          int     `json:"reconciles"`
	Events              int     `json:"events"`
	Browser             string  `json:"browser"`
}

// measure is run on the page. It wraps the page's frame to see how long that takes, and counts frames on its own.
const measure = `new Promise((done) => {
  const seconds = %v, app = globalThis.opdock, gaps = [], work = [];
  let longTasks = 0, last = 0, began = 0;
  const observer = new PerformanceObserver((list) => { longTasks += list.getEntries().length });
  observer.observe({ entryTypes: ["longtask"] });
  if (app) {
    const frame = app.frame.bind(app);
    app.frame = (now) => { const t = performance.now(); frame(now); work.push(performance.now() - t); };
  }
  const events = app ? app.store.events : 0, passes = app ? app.store.passes.length + app.store.dropped : 0;
  const tick = (now) => {
    if (began === 0) began = now; else gaps.push(now - last);
    last = now;
    if (now - began < seconds * 1000) return requestAnimationFrame(tick);
    observer.disconnect();
    if (app) delete app.frame;
    const order = (list) => list.sort((a, b) => a - b);
    const at = (list, share) => list.length ? list[Math.min(list.length - 1, Math.floor(list.length * share))] : 0;
    const onTime = gaps.filter((gap) => gap <= 25).length / gaps.length;
    order(gaps); order(work);
    done({
      seconds: (last - began) / 1000, frames: gaps.length, framesPerSecond: gaps.length / ((last - began) / 1000), onTime,
      p50: at(gaps, .5), p99: at(gaps, .99), longest: at(gaps, 1), workP50: at(work, .5), workP99: at(work, .99), workMax: at(work, 1),
      longTasks, events: app ? app.store.events - events : 0, reconciles: app ? app.store.passes.length + app.store.dropped - passes : 0,
      browser: navigator.userAgent.match(/Chrome\/[\d.]+/)[0],
    });
  };
  requestAnimationFrame(tick);
})`

func main() { os.Exit(status()) }

func status() int {
	objects := flag.Int("objects", 1000, "how many objects there are")
	events := flag.Int("events", 100, "how many events there are in a second")
	length := flag.Duration("for", 20*time.Second, "how long to measure")
	scale := flag.String("scale", "auto", "auto, steps or time")
	picture := flag.String("picture", "", "where to put a picture of the page")
	serve := flag.Bool("serve", false, "only make up the fleet, and print the page's address")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if *serve {
		err = serveFleet(ctx, *objects, *events)
	} else {
		err = run(ctx, *objects, *events, *length, *scale, *picture)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "frames:", err)
		return 1
	}
	return 0
}

func serveFleet(ctx context.Context, objects, events int) error {
	world := demo.New(objects, time.Now())
	running, err := page.Start(page.Options{Title: "made-up fleet", Tree: world.Model, Records: world.Endpoint, Findings: world.Endpoint.Findings})
	if err != nil {
		return err
	}
	fmt.Println(running.URL())
	world.Run(ctx, events)
	return running.Close()
}

func run(ctx context.Context, objects, events int, length time.Duration, scale, picture string) error {
	address, end, err := startFleet(ctx, objects, events)
	if err != nil {
		return err
	}
	defer end()
	browser, err := chromium.Start(ctx)
	if err != nil {
		return err
	}
	defer browser.Close()
	p, err := browser.Open(address, chromium.Options{Width: 1440, Height: 900})
	if err != nil {
		return err
	}
	// Until there is as much to draw as there will ever be in the range that is seen.
	if err := p.Await(fmt.Sprintf("opdock.forest.nodes.size >= %d && opdock.store.events > %d", objects, 5*events)); err != nil {
		return err
	}
	if err := p.Do(fmt.Sprintf("opdock.controls.scale(%q)", scale)); err != nil {
		return err
	}
	select {
	case <-time.After(length / 2):
	case <-ctx.Done():
		return ctx.Err()
	}
	result, err := measureOn(p, length)
	if err != nil {
		return err
	}
	if picture != "" {
		image, err := p.Picture()
		if err != nil {
			return err
		}
		if err := os.WriteFile(picture, image, 0o644); err != nil { //nolint:gosec // a public picture
			return err
		}
	}
	p.Close() // it would draw beside the empty page
	idle, err := browser.Open(address+"/logo.svg", chromium.Options{Width: 1440, Height: 900})
	if err != nil {
		return err
	}
	empty, err := measureOn(idle, length/4)
	if err != nil {
		return err
	}
	result.IdleFramesPerSecond, result.IdleOnTime = empty.FramesPerSecond, empty.OnTime
	result.Objects, result.EventsPerSecond = objects, events
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", "  ")
	return out.Encode(result)
}

func measureOn(p *chromium.Page, length time.Duration) (Result, error) {
	return chromium.GetWithin[Result](p, fmt.Sprintf(measure, length.Seconds()), length+30*time.Second)
}
