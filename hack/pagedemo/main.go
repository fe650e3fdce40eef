// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Command pagedemo serves the page with a simulated fleet, for work on the page itself.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/opdock/opdock/internal/page"
	"github.com/opdock/opdock/internal/page/demo"
)

func main() { os.Exit(status()) }

func status() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	address := flag.String("address", "127.0.0.1:8765", "address to serve the page on")
	objects := flag.Int("objects", 60, "number of objects")
	events := flag.Int("events", 4, "number of events per second")
	flag.Parse()
	world := demo.New(*objects, time.Now())
	running, err := page.Start(page.Options{Title: "made-up fleet", Tree: world.Model, Records: world.Endpoint, Findings: world.Endpoint.Findings,
		Traffic: world.Traffic, Rights: demo.Rights, Address: *address})
	if err != nil {
		fmt.Fprintln(os.Stderr, "pagedemo:", err)
		return 1
	}
	defer running.Close()
	fmt.Println(running.URL())
	world.Run(ctx, *events)
	return 0
}
