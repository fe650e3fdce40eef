// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

var (
	amd64 = Platform{OS: "linux", Architecture: "amd64"}
	arm64 = Platform{OS: "linux", Architecture: "arm64"}
)

// released writes an image of two platforms in all forms that can be read.
func released(t *testing.T) (images map[string]string) {
	t.Helper()
	made, err := image(created, Program{amd64, []byte("\x7fELF one")}, Program{arm64, []byte("\x7fELF other")}).Layout()
	if err != nil {
		t.Fatal(err)
	}
	folder, archive := filepath.Join(t.TempDir(), "image"), filepath.Join(t.TempDir(), "image.tar")
	if err := made.WriteFolder(folder); err != nil {
		t.Fatal(err)
	}
	var content bytes.Buffer
	if err := made.WriteTar(&content, created); err != nil {
		t.Fatal(err)
	}
	put(t, archive, content.String())
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	pushed := strings.TrimPrefix(server.URL, "http://") + "/team/ship:v1"
	if err := made.Push(t.Context(), pushed); err != nil {
		t.Fatal(err)
	}
	return map[string]string{"directory": folder, "archive": archive, "registry": pushed}
}

func TestReadProgram(t *testing.T) {
	for form, image := range released(t) {
		t.Run(form, func(t *testing.T) {
			for platform, want := range map[Platform]string{amd64: "\x7fELF one", arm64: "\x7fELF other"} {
				if got, err := ReadProgram(t.Context(), image, "/operator", platform); string(got) != want || err != nil {
					t.Errorf("the program for %s is %q, %v", platform, got, err)
				}
			}
			if got, err := ReadProgram(t.Context(), image, "/operator", Platform{OS: "linux", Architecture: "s390x"}); err == nil || !strings.Contains(err.Error(), "s390x") {
				t.Errorf("the program for another platform is %q, %v", got, err)
			}
		})
	}
}

// saved writes an archive as docker save does.
func saved(t *testing.T, config v1.Config, files ...*tar.Header) string {
	t.Helper()
	var content bytes.Buffer
	archive := tar.NewWriter(&content)
	for _, file := range files {
		// The owner's name stands for the content.
		text := file.Uname
		file.Uname, file.Size, file.Mode = "", int64(len(text)), 0o755
		if err := archive.WriteHeader(file); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(archive, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	made, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		t.Fatal(err)
	}
	settings, err := made.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	settings = settings.DeepCopy()
	settings.OS, settings.Architecture, settings.Config = "linux", "amd64", config
	if made, err = mutate.ConfigFile(made, settings); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "saved.tar")
	if err := tarball.WriteToFile(file, name.MustParseReference("ship:v1"), made); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestWhichProgramIsRead(t *testing.T) {
	program := func(at, content string) *tar.Header {
		return &tar.Header{Name: at, Typeflag: tar.TypeReg, Uname: "\x7fELF " + content}
	}
	link := func(at, target string) *tar.Header {
		return &tar.Header{Name: at, Typeflag: tar.TypeSymlink, Linkname: target}
	}
	script := &tar.Header{Name: "start.sh", Typeflag: tar.TypeReg, Uname: "#!/bin/sh"}
	for name, test := range map[string]struct {
		config v1.Config
		files  []*tar.Header
		want   string // the content, or a part of the error
	}{
		"of the manifests":     {v1.Config{Entrypoint: []string{"/tini", "--"}}, []*tar.Header{program("tini", "init"), program("operator", "right")}, "\x7fELF right"},
		"entrypoint":           {v1.Config{Entrypoint: []string{"/ship", "--fast"}}, []*tar.Header{program("ship", "right")}, "\x7fELF right"},
		"command":              {v1.Config{Cmd: []string{"/ship"}}, []*tar.Header{program("./ship", "right")}, "\x7fELF right"},
		"in the directory":     {v1.Config{Entrypoint: []string{"./ship"}, WorkingDir: "/opt"}, []*tar.Header{program("opt/ship", "right")}, "\x7fELF right"},
		"in the search path":   {v1.Config{Entrypoint: []string{"ship"}, Env: []string{"PATH=/none:/opt"}}, []*tar.Header{program("opt/ship", "right")}, "\x7fELF right"},
		"behind links":         {v1.Config{Entrypoint: []string{"/ship"}}, []*tar.Header{link("ship", "opt/current"), program("opt/v1", "right"), link("opt/current", "v1")}, "\x7fELF right"},
		"in a circle":          {v1.Config{Entrypoint: []string{"/ship"}}, []*tar.Header{link("ship", "boat"), link("boat", "ship")}, "too many links"},
		"script":               {v1.Config{Entrypoint: []string{"/start.sh"}}, []*tar.Header{script}, "it is a script"},
		"missing":              {v1.Config{Entrypoint: []string{"/ship"}}, []*tar.Header{program("boat", "wrong")}, "has no program at /operator or /ship"},
		"without a command":    {v1.Config{}, []*tar.Header{program("boat", "wrong")}, "has no program at /operator"},
		"something else there": {v1.Config{Entrypoint: []string{"/ship"}}, []*tar.Header{{Name: "ship", Typeflag: tar.TypeDir}}, "it is not a file"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ReadProgram(t.Context(), saved(t, test.config, test.files...), "/operator", amd64)
			if err != nil && !strings.Contains(err.Error(), test.want) || err == nil && string(got) != test.want {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	file := saved(t, v1.Config{Entrypoint: []string{"/ship"}}, program("ship", "right"))
	if _, err := ReadProgram(t.Context(), file, "/operator", arm64); err == nil || !strings.Contains(err.Error(), "is for linux/amd64, not for linux/arm64") {
		t.Errorf("for another platform: %v", err)
	}
}

func TestWhatIsNoImage(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "notes.txt"), "no image")
	outside := filepath.Join(t.TempDir(), "outside.tar")
	var content bytes.Buffer
	archive := tar.NewWriter(&content)
	if err := archive.WriteHeader(&tar.Header{Name: "../escaped", Typeflag: tar.TypeReg, Mode: 0o600}); err != nil {
		t.Fatal(err)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	put(t, outside, content.String())
	for image, want := range map[string]string{
		filepath.Join(dir, "notes.txt"): "unpacking it",
		filepath.Join(dir, "none.tar"):  "no such file",
		dir:                             "index.json",
		outside:                         "unpacking it",
		"Ship:v1:v2":                    "could not parse reference",
	} {
		if _, err := ReadProgram(t.Context(), image, "/operator", amd64); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", image, err)
		}
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(outside), "escaped")); err == nil {
		t.Error("a file outside of the directory was written")
	}
}

// header returns an ELF program that consists of headers, and names a loader.
func header(t *testing.T, machine elf.Machine, loader string) []byte {
	t.Helper()
	var content bytes.Buffer
	const start, part = 64, 56 // sizes of the headers
	first := elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_EXEC), Machine: uint16(machine), Version: uint32(elf.EV_CURRENT), Phoff: start, Ehsize: start, Phentsize: part, Phnum: 1,
	}
	second := elf.Prog64{Type: uint32(elf.PT_INTERP), Off: start + part, Filesz: uint64(len(loader) + 1), Memsz: uint64(len(loader) + 1)}
	if err := errors.Join(binary.Write(&content, binary.LittleEndian, first), binary.Write(&content, binary.LittleEndian, second)); err != nil {
		t.Fatal(err)
	}
	return append(content.Bytes(), loader+"\x00"...)
}

func TestProgramsThatThisMachineCannotRun(t *testing.T) {
	for name, test := range map[string]struct {
		content []byte
		want    string
	}{
		"right":                {header(t, elf.EM_X86_64, os.Args[0]), ""},
		"another architecture": {header(t, elf.EM_AARCH64, os.Args[0]), "it is a program for EM_AARCH64, although the image is for linux/amd64"},
		"another loader":       {header(t, elf.EM_X86_64, "/lib/ld-nowhere.so.1"), "it is linked dynamically, by /lib/ld-nowhere.so.1, which this machine does not have: build the image with CGO_ENABLED=0"},
		"a script":             {[]byte("#!/bin/sh\n"), "it is a script, which needs the other files of the image"},
		"nothing":              {nil, "it is not a Linux program"},
	} {
		got := ""
		if err := isProgram(test.content, amd64); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}
