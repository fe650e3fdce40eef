// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package projectcmd

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/opdock/opdock/internal/build"
	"github.com/opdock/opdock/internal/cachedir"
	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/oci"
	"github.com/opdock/opdock/internal/project"
)

type buildOptions struct {
	dir       string
	main      string
	image     string
	output    string
	platforms []string
	ldflags   string
	push      bool
	quiet     bool
}

// NewBuild returns the verb build.
func NewBuild(app *cmdutil.App) *cobra.Command {
	a := verbs{app}
	var o buildOptions
	cmd := &cobra.Command{
		Use:   "build [--image NAME:TAG] [FLAG]...",
		Short: "Build a container image of a project without a container engine",
		Long: `Compiles the operator of the Go project in the current directory and writes an OCI image that contains
only that program. The program runs as a non-root user. You need no Docker, no Dockerfile and no base
image.

The image is an archive if --output ends in .tar. Otherwise it is a directory in the OCI image layout.
With --push, the image is also pushed to the registry in its name, with the credentials stored by "docker
login" and similar tools. Without --push, the image stays on this machine. Other tools can read it:

  skopeo copy oci-archive:dist/image.tar docker://NAME:TAG
  crane push dist/image NAME:TAG             podman load -i dist/image.tar
  ctr images import dist/image.tar           kind load image-archive dist/image.tar

The program is placed where the manifests of the project expect it, or at /manager. Builds are
reproducible: the same source in the same directory gives the same image. The creation time of the image
is $SOURCE_DATE_EPOCH, or 1970 if it is not set. Set $GOFLAGS to pass flags to the compiler. The image has
no CA certificates and no shell.`,
		Example: `  opdock build --image team/harbour:v1
  opdock build --image team/harbour:v1 --platform linux/amd64,linux/arm64 --push
  opdock build --output dist/image --main ./cmd/operator
  SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) opdock build --image team/harbour:v1`,
		Args: cmdutil.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd); err != nil {
				return err
			}
			return a.build(cmd.Context(), cmd, o)
		},
	}
	flags := cmd.Flags()
	a.AddDirFlag(cmd, &o.dir)
	flags.StringVar(&o.main, "main", "", "main package of the operator, if the project has several")
	flags.StringVar(&o.image, "image", "", "name and tag of the image (default: the image in the manifests, or PROJECT:latest)")
	flags.StringVar(&o.output, "output", "", "archive (.tar) or directory to write (default: dist/image.tar in the project)")
	flags.StringSliceVar(&o.platforms, "platform", nil, "platforms, separated by commas (default: Linux on the architecture of this machine)")
	flags.StringVar(&o.ldflags, "ldflags", "", "flags for the linker, such as -X main.version=v1")
	flags.BoolVar(&o.push, "push", false, "push the image to the registry in --image")
	flags.BoolVarP(&o.quiet, "quiet", "q", false, "do not show progress")
	a.Complete(cmd, "platform", func() []string {
		return []string{"linux/amd64", "linux/arm64", "linux/arm/v7", "linux/s390x", "linux/ppc64le"}
	})
	a.Complete(cmd, "image", func() []string { return nil })
	a.Complete(cmd, "ldflags", func() []string { return nil })
	a.Complete(cmd, "main", func() []string { return a.mains(o.dir) })
	return cmd
}

func (o *buildOptions) check(cmd *cobra.Command) error {
	wrong := func(format string, args ...any) error {
		return &cmdutil.UsageError{Message: fmt.Sprintf(format, args...), Hints: []string{cmdutil.SeeHelp(cmd)}}
	}
	if err := checkImage(cmd, o.image); err != nil {
		return err
	}
	switch {
	case strings.Contains(o.image, "@"):
		return wrong("--image cannot have a digest: the digest is the result of the build")
	case o.push && o.image == "":
		return wrong("--push needs --image: the name of the image selects the registry")
	case strings.HasSuffix(o.output, ".gz") || strings.HasSuffix(o.output, ".tgz"):
		return wrong("--output cannot be compressed: the layers in the archive are already compressed")
	}
	if len(o.platforms) == 0 {
		o.platforms = []string{oci.HostPlatform().String()}
	}
	if _, err := parsePlatforms(o.platforms); err != nil {
		return wrong("--platform: %v", err)
	}
	return nil
}

// mains are the main packages of a project, for completion.
func (a verbs) mains(dir string) []string {
	found, err := project.Find(dir)
	if err != nil {
		return nil
	}
	all, err := found.Mains()
	if err != nil {
		return nil
	}
	return all
}

func (a verbs) build(ctx context.Context, cmd *cobra.Command, o buildOptions) error {
	var notes []string
	if err := a.RecoverProject(ctx, cmdutil.ModuleFolder(o.dir)); err != nil {
		return err
	}
	found, err := a.FindProject(o.dir, &notes)
	if err != nil {
		return err
	}
	main, err := found.Main(o.main)
	if ambiguous := (*project.AmbiguousMainError)(nil); errors.As(err, &ambiguous) {
		return &cmdutil.UsageError{Message: err.Error(), Hints: []string{"for example: " + cmdutil.ShellQuote(a.Program) + " build --main " + ambiguous.Mains[0]}}
	}
	if err != nil {
		return err
	}
	created, err := oci.SourceDate(a.Getenv("SOURCE_DATE_EPOCH"))
	if err != nil {
		return &cmdutil.UsageError{Message: err.Error(), Hints: []string{cmdutil.SeeHelp(cmd)}}
	}
	platforms, err := parsePlatforms(o.platforms)
	if err != nil {
		return err
	}
	image, err := build.Run(ctx, build.Options{
		Project: found, Main: main, Image: o.image, Output: o.output, Platforms: platforms, LDFlags: o.ldflags, Created: created,
		Env: a.Env, Errors: a.Err, Cache: a.programCache(), Step: a.steps(o.quiet, fmt.Sprintf("Building %s of %s for %s", main, found.Name, strings.Join(o.platforms, ", "))),
	})
	if err != nil {
		return err
	}
	for _, note := range append(notes, image.Notes...) {
		fmt.Fprintf(a.Err, "note: %s\n", note)
	}
	if o.push {
		err := a.steps(o.quiet, "")("pushing "+image.Reference, "pushed "+image.Reference, func() error { return image.Push(ctx) })
		if err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(a.Out, "%s\t%s@%s\n", image.Output, image.Reference, image.Digest)
	return err
}

// programCache is where programs are kept; empty if there is no place for it.
func (a verbs) programCache() string {
	dir, err := cachedir.Dir(a.Getenv)
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "build")
}

// steps returns a function that shows the progress of each step, below a title.
func (a verbs) steps(quiet bool, title string) func(running, done string, do func() error) error {
	d := a.NewDisplay(quiet)
	return func(running, done string, do func() error) error {
		if title != "" {
			d.Title("%s", title)
			title = ""
		}
		began := a.Now()
		d.Run(running)
		stop := d.Animate()
		err := do()
		stop()
		if err == nil {
			d.Done(done, a.Now().Sub(began))
		}
		return err
	}
}

func parsePlatforms(texts []string) (platforms []oci.Platform, err error) {
	for _, text := range texts {
		platform, err := oci.ParsePlatform(text)
		if err != nil {
			return nil, err
		}
		platforms = append(platforms, platform)
	}
	return platforms, nil
}
