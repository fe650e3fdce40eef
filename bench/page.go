// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"
)

// pageFrames is the output of test/browser/frames, which documents the fields.
type pageFrames struct {
	Objects             int     `json:"objects"`
	EventsPerSecond     int     `json:"eventsPerSecond"`
	Seconds             float64 `json:"seconds"`
	FramesPerSecond     float64 `json:"framesPerSecond"`
	OnTime              float64 `json:"onTime"`
	P50                 float64 `json:"p50"`
	P99                 float64 `json:"p99"`
	Longest             float64 `json:"longest"`
	WorkP50             float64 `json:"workP50"`
	WorkP99             float64 `json:"workP99"`
	LongTasks           int     `json:"longTasks"`
	IdleFramesPerSecond float64 `json:"idleFramesPerSecond"`
	IdleOnTime          float64 `json:"idleOnTime"`
	Reconciles          int     `json:"reconciles"`
	Browser             string  `json:"browser"`
}

// pageScales are the two time scales of the page.
var pageScales = []string{"time", "steps"}

// pageSection measures the frame rate of the page in Chromium. A program of another module drives the browser.
func pageSection(ctx context.Context, e environment) (string, error) {
	if path, _ := exec.LookPath("chromium"); path == "" {
		say("Page: not measured, because Chromium is not installed; run `make chromium`")
		return "", nil
	}
	began := time.Now()
	program := filepath.Join(e.work, "frames")
	build := exec.CommandContext(ctx, "go", "-C", "test/browser", "build", "-o", program, "./frames")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building test/browser/frames: %w\n%s", err, out)
	}
	results := make([]pageFrames, len(pageScales))
	for i, scale := range pageScales {
		say("Page, scale of %s", scale)
		out, err := exec.CommandContext(ctx, program, "-scale", scale).Output()
		if err != nil {
			return "", fmt.Errorf("measuring the page: %w", err)
		}
		if err := json.Unmarshal(out, &results[i]); err != nil {
			return "", fmt.Errorf("reading the output of test/browser/frames: %w", err)
		}
	}
	first := results[0]
	return sectionPage("page", "The live view", time.Since(began), func(p printer) {
		p("Headless %s without a graphics card, in a window of 1440 × 900 pixels. The view follows %d objects with %d events", first.Browser, first.Objects,
			first.EventsPerSecond)
		p("per second for %.0f s. A frame is on time if no frame was dropped before it. The empty page shows the limit of the machine.\n", first.Seconds)
		p("| scale | frames per second | on time | frame, median | frame, 99th percentile | longest | work per frame, median | work per frame, 99th percentile | tasks over 50 ms |")
		p("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
		for i, r := range results {
			p("| %s | %.1f | %.1f %% | %.1f ms | %.1f ms | %.1f ms | %.1f ms | %.1f ms | %d |", pageScales[i], r.FramesPerSecond, 100*r.OnTime, r.P50, r.P99,
				r.Longest, r.WorkP50, r.WorkP99, r.LongTasks)
			p("| an empty page | %.1f | %.1f %% | | | | | | |", r.IdleFramesPerSecond, 100*r.IdleOnTime)
		}
	}, []goal{
		{"frames per second, scale of time", "60, or the limit of the machine", fmt.Sprintf("%.1f", first.FramesPerSecond), first.FramesPerSecond >= 0.98*min(60, first.IdleFramesPerSecond)},
		{"frames per second, scale of steps", "60, or the limit of the machine", fmt.Sprintf("%.1f", results[1].FramesPerSecond), results[1].FramesPerSecond >= 0.98*min(60, results[1].IdleFramesPerSecond)},
	}), nil
}
