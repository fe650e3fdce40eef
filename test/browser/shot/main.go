// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Command shot takes a picture of a page, after having done something on it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/opdock/opdock/test/browser/chromium"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "shot:", err)
		os.Exit(1)
	}
}

func run() error {
	var o chromium.Options
	address := flag.String("url", "http://127.0.0.1:8765", "the page")
	out := flag.String("out", "page.png", "the picture")
	flag.BoolVar(&o.Dark, "dark", false, "use the dark theme")
	flag.Int64Var(&o.Width, "width", 1440, "width of the window")
	flag.Int64Var(&o.Height, "height", 900, "height of the window")
	await := flag.String("await", "true", "JavaScript to wait for first")
	script := flag.String("do", "", "JavaScript to run then")
	after := flag.Duration("after", time.Second, "how long to let things settle after that")
	flag.Parse()

	browser, err := chromium.Start(context.Background())
	if err != nil {
		return err
	}
	defer browser.Close()
	page, err := browser.Open(*address, o)
	if err != nil {
		return err
	}
	if err := page.Await(*await); err != nil {
		return err
	}
	if err := page.Do(*script); err != nil {
		return err
	}
	time.Sleep(*after)
	for _, problem := range page.Problems() {
		fmt.Fprintln(os.Stderr, problem)
	}
	picture, err := page.Picture()
	if err != nil {
		return err
	}
	return os.WriteFile(*out, picture, 0o644) //nolint:gosec // a public picture
}
