// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"archive/tar"
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/opdock/opdock/internal/hint"
)

// forms is what users can do if something is not an image.
const forms = "an image is an archive that docker save or opdock build wrote, a directory in the OCI image layout, or a name in a registry"

// ReadProgram returns the program that an image runs on a platform: the one at the path, if the image has it, or else
// its entrypoint. The image is an archive (of docker save, or of an image layout), a directory in the OCI image
// layout, or a name in a registry.
func ReadProgram(ctx context.Context, image, at string, platform Platform) ([]byte, error) {
	found, err := openImage(ctx, image, platform)
	if err != nil {
		return nil, fmt.Errorf("reading the image %s: %w", image, err)
	}
	defer found.close()
	config, err := found.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("reading the image %s: %w", image, err)
	}
	if config.OS != platform.OS || config.Architecture != platform.Architecture {
		return nil, fmt.Errorf("the image %s is for %s/%s, not for %s", image, config.OS, config.Architecture, platform)
	}
	candidates := append([]string{at}, entrypoints(&config.Config)...)
	for _, candidate := range candidates {
		content, err := readFile(found, candidate)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s in the image %s: %w", candidate, image, err)
		}
		if err := isProgram(content, platform); err != nil {
			return nil, fmt.Errorf("%s in the image %s: %w", candidate, image, err)
		}
		return content, nil
	}
	return nil, fmt.Errorf("the image %s has no program at %s", image, strings.Join(candidates, " or "))
}

// entrypoints returns the paths at which the program can be that a container starts.
func entrypoints(config *v1.Config) (paths []string) {
	command := slices.Concat(config.Entrypoint, config.Cmd)
	if len(command) == 0 {
		return nil
	}
	switch program := command[0]; {
	case path.IsAbs(program):
		return []string{path.Clean(program)}
	case strings.Contains(program, "/"):
		return []string{path.Join("/", config.WorkingDir, program)}
	default:
		for _, folder := range searchPath(config.Env) {
			paths = append(paths, path.Join(folder, program))
		}
		return paths
	}
}

// searchPath returns the directories in which a container looks for programs.
func searchPath(env []string) []string {
	for _, variable := range env {
		if value, ok := strings.CutPrefix(variable, "PATH="); ok {
			return filepath.SplitList(value)
		}
	}
	return []string{"/usr/local/bin", "/usr/bin", "/bin"}
}

// machines are how programs name their architecture.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// isProgram checks that a file can run on a platform without the rest of its image, as far as its headers show.
func isProgram(content []byte, platform Platform) error {
	switch text := string(content[:min(len(content), 4)]); {
	case text == "\x7fELF":
		return checkHeaders(content, platform)
	case strings.HasPrefix(text, "#!"):
		return errors.New("it is a script, which needs the other files of the image")
	}
	return errors.New("it is not a Linux program")
}

func checkHeaders(content []byte, platform Platform) error {
	program, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		return nil //nolint:nilerr // the kernel may accept it, and otherwise says why not
	}
	if want, known := machines[platform.Architecture]; known && program.Machine != want {
		return fmt.Errorf("it is a program for %s, although the image is for %s", program.Machine, platform)
	}
	for _, part := range program.Progs {
		if part.Type != elf.PT_INTERP {
			continue
		}
		// The error of the kernel would be that the program itself does not exist.
		loader, err := io.ReadAll(part.Open())
		if path := strings.TrimRight(string(loader), "\x00"); err == nil && path != "" {
			if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("it is linked dynamically, by %s, which this machine does not have: build the image with CGO_ENABLED=0", path)
			}
		}
	}
	return nil
}

// opened is an image, and what to clean up after reading it.
type opened struct {
	v1.Image
	close func()
}

func openImage(ctx context.Context, image string, platform Platform) (*opened, error) {
	nothing := func() {}
	info, err := os.Stat(image)
	switch {
	case err == nil && info.IsDir():
		found, err := openLayout(image, platform)
		return &opened{found, nothing}, err
	case err == nil:
		return openArchive(image, platform)
	case filepath.IsAbs(image) || strings.HasPrefix(image, ".") || strings.HasSuffix(image, ".tar"):
		return nil, hint.With(err, forms)
	}
	reference, err := name.ParseReference(image)
	if err != nil {
		return nil, hint.With(err, forms)
	}
	found, err := remote.Image(reference, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain), remote.WithPlatform(platform.v1()))
	if err != nil {
		return nil, hint.With(err, "check the name and that you are logged in to the registry, or name an archive that docker save or opdock build wrote")
	}
	return &opened{found, nothing}, nil
}

func (p Platform) v1() v1.Platform {
	return v1.Platform{OS: p.OS, Architecture: p.Architecture, Variant: p.Variant}
}

// openArchive opens an archive of docker save, or one of an image layout, which it unpacks to a temporary directory.
func openArchive(file string, platform Platform) (*opened, error) {
	if found, err := tarball.ImageFromPath(file, nil); err == nil {
		return &opened{found, func() {}}, nil
	}
	folder, err := os.MkdirTemp("", "opdock-image-")
	if err != nil {
		return nil, err
	}
	remove := func() { _ = os.RemoveAll(folder) } // temporary
	if err := unpack(file, folder); err != nil {
		remove()
		return nil, hint.With(fmt.Errorf("unpacking it: %w", err), forms)
	}
	found, err := openLayout(folder, platform)
	if err != nil {
		remove()
		return nil, err
	}
	return &opened{found, remove}, nil
}

// unpack writes the regular files of an archive, none of them outside of the folder.
func unpack(file, folder string) error {
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	for archive := tar.NewReader(in); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		at := path.Clean(header.Name)
		if err := root.MkdirAll(path.Dir(at), 0o700); err != nil {
			return err
		}
		out, err := root.Create(at)
		if err != nil {
			return err
		}
		if _, err := io.Copy(out, archive); err != nil { //nolint:gosec // an image that the user names
			return errors.Join(err, out.Close())
		}
		if err := out.Close(); err != nil {
			return err
		}
	}
}

func openLayout(folder string, platform Platform) (v1.Image, error) {
	index, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		return nil, hint.With(err, forms)
	}
	var others []string
	found, err := choose(index, platform, &others)
	if found == nil && err == nil {
		err = fmt.Errorf("it has no image for %s, only for %s", platform, strings.Join(others, ", "))
	}
	return found, err
}

// choose returns the image of a platform in an index and the indexes in it; nil if there is none.
func choose(index v1.ImageIndex, platform Platform, others *[]string) (v1.Image, error) {
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	for _, one := range manifest.Manifests {
		switch {
		case one.MediaType.IsIndex():
			below, err := index.ImageIndex(one.Digest)
			if err != nil {
				return nil, err
			}
			if found, err := choose(below, platform, others); found != nil || err != nil {
				return found, err
			}
		case one.MediaType != types.OCIManifestSchema1 && one.MediaType != types.DockerManifestSchema2:
		case one.Platform == nil || one.Platform.Satisfies(platform.v1()):
			return index.Image(one.Digest)
		default:
			*others = append(*others, one.Platform.String())
		}
	}
	return nil, nil
}

// readFile reads a file of an image, and follows links to it.
func readFile(image v1.Image, file string) ([]byte, error) {
	const links = 8
	for range links {
		content, target, err := readEntry(image, file)
		if err != nil || target == "" {
			return content, err
		}
		if !path.IsAbs(target) {
			target = path.Join(path.Dir(file), target)
		}
		file = target
	}
	return nil, errors.New("too many links")
}

// readEntry reads a file of an image, or where it leads if it is a link.
func readEntry(image v1.Image, file string) (content []byte, target string, err error) {
	all := mutate.Extract(image)
	defer all.Close()
	for archive := tar.NewReader(all); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil, "", fs.ErrNotExist
		}
		if err != nil {
			return nil, "", err
		}
		if path.Join("/", header.Name) != path.Clean(file) {
			continue
		}
		switch header.Typeflag {
		case tar.TypeReg:
			content, err := io.ReadAll(archive)
			return content, "", err
		case tar.TypeSymlink:
			return nil, header.Linkname, nil
		case tar.TypeLink:
			return nil, path.Join("/", header.Linkname), nil
		}
		return nil, "", errors.New("it is not a file")
	}
}
