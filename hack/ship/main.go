// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Command ship builds what users install: dist/install.yaml, the image of the manager, and the files that the Helm
// chart shares with config. make runs it in the root of the repository.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/opdock/opdock/internal/manager/command"
	"github.com/opdock/opdock/internal/oci"
	"github.com/opdock/opdock/internal/ship"
)

const usage = "usage: ship installer|image|chart [flags]"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "ship:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	version := flags.String("version", "", "version and image tag; default: the version in config")
	image := flags.String("image", "", "image name without a tag; default: the name in config")
	output := flags.String("output", "dist", "directory to write to")
	platforms := flags.String("platforms", "linux/amd64,linux/arm64", "platforms of the image")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if err := os.MkdirAll(*output, 0o755); err != nil {
		return err
	}
	switch args[0] {
	case "installer":
		return installer(filepath.Join(*output, "install.yaml"), ship.Image{Name: *image, Tag: *version})
	case "image":
		return buildImage(*output, *version, strings.Split(*platforms, ","))
	case "chart":
		return chart()
	default:
		return errors.New(usage)
	}
}

func installer(path string, image ship.Image) error {
	data, err := ship.Installer("config/default", image)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		return err
	}
	fmt.Println("wrote", path)
	return nil
}

func chart() error {
	changed, err := ship.SyncChart(".", false)
	for _, path := range changed {
		fmt.Println("wrote", path)
	}
	return err
}

func buildImage(output, version string, platforms []string) error {
	created, err := oci.SourceDate(os.Getenv("SOURCE_DATE_EPOCH"))
	if err != nil {
		return err
	}
	source := oci.Source{
		Dir: ".", Package: "./cmd/manager", Tags: command.BuildTags, Errors: os.Stderr,
		LDFlags: "-X github.com/opdock/opdock/internal/manager/command.release=" + version,
	}
	var programs []oci.Program
	for _, name := range platforms {
		platform, err := oci.ParsePlatform(name)
		if err != nil {
			return err
		}
		fmt.Println("compiling for", platform)
		program, err := source.Compile(context.Background(), platform)
		if err != nil {
			return err
		}
		programs = append(programs, program)
	}
	layout, err := ship.NewImage(programs, version, created).Layout()
	if err != nil {
		return err
	}
	dir := filepath.Join(output, "image")
	if err := layout.WriteFolder(dir); err != nil {
		return fmt.Errorf("writing the image: %w", err)
	}
	archive, err := os.Create(dir + ".tar")
	if err != nil {
		return err
	}
	if err := errors.Join(layout.WriteTar(archive, created), archive.Close()); err != nil {
		return fmt.Errorf("writing the image: %w", err)
	}
	digest, err := layout.Digest()
	if err != nil {
		return err
	}
	fmt.Printf("wrote %s and %s.tar: %s:%s@%s\n", dir, dir, ship.ImageName, version, digest)
	return nil
}
