// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package projectcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/hint"
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
	for _, text := range o.platforms {
		if _, err := oci.ParsePlatform(text); err != nil {
			return wrong("--platform: %v", err)
		}
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
	output := cmp.Or(o.output, filepath.Join(found.Dir, "dist", "image.tar"))
	if err := checkOutput(output); err != nil {
		return err
	}
	manifests, err := found.Manifests(ctx)
	if err != nil {
		notes = append(notes, fmt.Sprintf("the manifests could not be read, so the program is placed at the default path: %v", err))
	}
	image := a.imageOf(found, manifests, o)
	image.Created = created
	image.Labels["org.opencontainers.image.created"] = created.UTC().Format(time.RFC3339)
	if image.Programs, err = a.compile(ctx, found, main, o); err != nil {
		return err
	}
	layout, err := image.Layout()
	if err != nil {
		return err
	}
	digest, err := layout.Digest()
	if err != nil {
		return err
	}
	if err := writeImage(layout, output, created); err != nil {
		return fmt.Errorf("writing the image: %w", err)
	}
	for _, note := range notes {
		fmt.Fprintf(a.Err, "note: %s\n", note)
	}
	if o.push {
		if err := a.push(ctx, layout, image.References["io.containerd.image.name"], o.quiet); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(a.Out, "%s\t%s@%s\n", output, image.References["io.containerd.image.name"], digest)
	return err
}

// imageOf is the image without its programs.
func (a verbs) imageOf(p *project.Project, manifests []*unstructured.Unstructured, o buildOptions) oci.Image {
	reference := o.image
	if deployed, ok := project.Image(manifests); reference == "" && ok && !project.IsPlaceholder(deployed) && !strings.Contains(deployed, "@") {
		reference = deployed
	}
	reference = cmp.Or(reference, p.Name)
	name, tag := reference, "latest"
	if at := strings.LastIndex(reference, ":"); at > strings.LastIndex(reference, "/") {
		name, tag = reference[:at], reference[at+1:]
	}
	return oci.Image{
		Entrypoint: project.Entrypoint(manifests),
		// Manifests may name the program without its folder.
		Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/"},
		Labels: map[string]string{
			"org.opencontainers.image.title":   path.Base(name),
			"org.opencontainers.image.version": tag,
		},
		// One for each family of tools: skopeo and podman, containerd and docker.
		References: map[string]string{"org.opencontainers.image.ref.name": tag, "io.containerd.image.name": name + ":" + tag},
	}
}

func (a verbs) compile(ctx context.Context, p *project.Project, main string, o buildOptions) ([]oci.Program, error) {
	if _, err := exec.LookPath("go"); err != nil {
		return nil, hint.With(errors.New("the go command was not found on PATH"), "install Go from https://go.dev/dl")
	}
	d := a.NewDisplay(o.quiet)
	d.Title("Building %s of %s for %s", main, p.Name, strings.Join(o.platforms, ", "))
	source := oci.Source{Dir: p.Dir, Package: main, LDFlags: o.ldflags, Env: a.Env, Errors: a.Err}
	switch cache, home := a.Getenv("XDG_CACHE_HOME"), a.Getenv("HOME"); { // without either, the program is linked each time
	case cache != "":
		source.Cache = filepath.Join(cache, "opdock", "build")
	case home != "":
		source.Cache = filepath.Join(home, ".cache", "opdock", "build")
	}
	var programs []oci.Program
	for _, text := range o.platforms {
		platform, err := oci.ParsePlatform(text)
		if err != nil {
			return nil, err
		}
		began := a.Now()
		d.Run("compiling for " + text)
		stop := d.Animate()
		program, err := source.Compile(ctx, platform)
		stop()
		switch {
		case ctx.Err() != nil:
			return nil, errors.New("interrupted: no image was written")
		case err != nil:
			return nil, err
		}
		d.Done("compiled for "+text, a.Now().Sub(began))
		programs = append(programs, program)
	}
	return programs, nil
}

func (a verbs) push(ctx context.Context, layout oci.Layout, reference string, quiet bool) error {
	d := a.NewDisplay(quiet)
	began := a.Now()
	d.Run("pushing " + reference)
	stop := d.Animate()
	err := layout.Push(ctx, reference)
	stop()
	if err != nil {
		return hint.With(err, "check that the image name contains the right registry and that you are logged in to it")
	}
	d.Done("pushed "+reference, a.Now().Sub(began))
	return nil
}

// checkOutput keeps an image from replacing what is none.
func checkOutput(output string) error {
	info, err := os.Stat(output)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	isArchive := strings.HasSuffix(output, ".tar")
	switch {
	case isArchive && info.IsDir():
		return fmt.Errorf("%s is a directory and cannot be replaced by an archive", output)
	case isArchive:
		return nil
	case !info.IsDir():
		return fmt.Errorf("%s is a file; use a name that ends in .tar for an archive, or another name for a directory", output)
	}
	entries, err := os.ReadDir(output)
	if err != nil {
		return err
	}
	isLayout := func(entry os.DirEntry) bool { return entry.Name() == "oci-layout" }
	if len(entries) > 0 && !slices.ContainsFunc(entries, isLayout) {
		return hint.With(fmt.Errorf("%s contains files that do not belong to an image and would be lost", output), "choose another directory: --output")
	}
	return nil
}

// writeImage writes the image. An archive is replaced at once, so that nobody reads half of one.
func writeImage(layout oci.Layout, output string, created time.Time) error {
	if err := os.MkdirAll(filepath.Dir(output), 0o755); err != nil {
		return err
	}
	if !strings.HasSuffix(output, ".tar") {
		return layout.WriteFolder(output)
	}
	archive, err := os.CreateTemp(filepath.Dir(output), ".image-*")
	if err != nil {
		return err
	}
	defer os.Remove(archive.Name()) // does nothing once it has been renamed
	if err := errors.Join(layout.WriteTar(archive, created), archive.Chmod(0o644), archive.Close()); err != nil {
		return err
	}
	return os.Rename(archive.Name(), output)
}
