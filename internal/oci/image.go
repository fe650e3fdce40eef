// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package oci makes container images of Go programs without a container engine: it compiles a program for each platform
// and lays it out as the Open Container Initiative has specified.
package oci

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"time"
)

const (
	// user is the one that is called nonroot by convention. It is given as a number because only that lets the kubelet
	// verify that it is not root.
	user = "65532:65532"

	typeIndex    = "application/vnd.oci.image.index.v1+json"
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

// Program is a program for one platform.
type Program struct {
	Platform
	// Content is the static binary.
	Content []byte
}

// Image is an image that has nothing in it but a program.
type Image struct {
	// Programs are the same program for different platforms.
	Programs []Program
	// Entrypoint is where the program is in the image: an absolute path.
	Entrypoint string
	Env        []string
	// Labels are what the image says about itself.
	Labels map[string]string
	// References are the annotations by which tools find the image in a layout.
	References map[string]string
	Created    time.Time
}

// Layout is an image in the layout of the Open Container Initiative: the content of its files by their path.
type Layout map[string][]byte

// Layout makes the image. The same input makes the same image, byte by byte.
func (i Image) Layout() (Layout, error) {
	layout := Layout{"oci-layout": []byte(`{"imageLayoutVersion":"1.0.0"}`)}
	images := index{SchemaVersion: 2, MediaType: typeIndex, Annotations: i.Labels}
	for _, program := range i.Programs {
		manifest, err := layout.addImage(program, i)
		if err != nil {
			return nil, fmt.Errorf("making the image for %s: %w", program.Platform, err)
		}
		images.Manifests = append(images.Manifests, manifest)
	}
	all, err := layout.addJSON(typeIndex, images)
	if err != nil {
		return nil, err
	}
	all.Annotations = i.References
	layout["index.json"], err = json.Marshal(index{SchemaVersion: 2, MediaType: typeIndex, Manifests: []descriptor{all}})
	return layout, err
}

// Digest is that of the image of all platforms.
func (l Layout) Digest() (string, error) {
	var top index
	if err := json.Unmarshal(l["index.json"], &top); err != nil || len(top.Manifests) != 1 {
		return "", fmt.Errorf("the layout names %d images instead of one: %w", len(top.Manifests), err)
	}
	return top.Manifests[0].Digest, nil
}

func (l Layout) addImage(program Program, i Image) (descriptor, error) {
	content, err := layer(program.Content, i.Entrypoint, i.Created)
	if err != nil {
		return descriptor{}, err
	}
	var compressed bytes.Buffer
	zipper := gzip.NewWriter(&compressed)
	if _, err := zipper.Write(content); err != nil {
		return descriptor{}, err
	}
	if err := zipper.Close(); err != nil {
		return descriptor{}, err
	}
	settings := config{
		Created: i.Created.UTC(), OS: program.OS, Architecture: program.Architecture, Variant: program.Variant,
		Config: runtimeConfig{User: user, Env: i.Env, Entrypoint: []string{i.Entrypoint}, WorkingDir: "/", Labels: i.Labels},
		RootFS: rootFS{Type: "layers", DiffIDs: []string{digest(content)}},
	}
	settingsAt, err := l.addJSON(typeConfig, settings)
	if err != nil {
		return descriptor{}, err
	}
	at, err := l.addJSON(typeManifest, manifest{
		SchemaVersion: 2, MediaType: typeManifest, Config: settingsAt,
		Layers: []descriptor{l.add(typeLayer, compressed.Bytes())}, Annotations: i.Labels,
	})
	at.Platform = &platform{OS: program.OS, Architecture: program.Architecture, Variant: program.Variant}
	return at, err
}

// layer is a tar with the program as its only file.
func layer(program []byte, entrypoint string, created time.Time) ([]byte, error) {
	var content bytes.Buffer
	writer := tar.NewWriter(&content)
	name := strings.TrimPrefix(path.Clean(entrypoint), "/")
	header := &tar.Header{Name: name, Mode: 0o555, Size: int64(len(program)), ModTime: created.UTC(), Typeflag: tar.TypeReg, Format: tar.FormatPAX}
	if err := writer.WriteHeader(header); err != nil {
		return nil, err
	}
	if _, err := writer.Write(program); err != nil {
		return nil, err
	}
	err := writer.Close()
	return content.Bytes(), err
}

func (l Layout) addJSON(mediaType string, value any) (descriptor, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return descriptor{}, err
	}
	return l.add(mediaType, data), nil
}

func (l Layout) add(mediaType string, data []byte) descriptor {
	sum := digest(data)
	l["blobs/sha256/"+sum[len("sha256:"):]] = data
	return descriptor{MediaType: mediaType, Digest: sum, Size: len(data)}
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// The types below are those of the image specification, as far as they are needed here.

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    *platform         `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type platform struct {
	OS           string `json:"os"`
	Architecture string `json:"architecture"`
	Variant      string `json:"variant,omitempty"`
}

type index struct {
	SchemaVersion int               `json:"schemaVersion"`
	MediaType     string            `json:"mediaType"`
	Manifests     []descriptor      `json:"manifests"`
	Annotations   map[string]string `json:"annotations,omitempty"`
}

type manifest struct {
	SchemaVersion int               `json:"schemaVersion"`
	MediaType     string            `json:"mediaType"`
	Config        descriptor        `json:"config"`
	Layers        []descriptor      `json:"layers"`
	Annotations   map[string]string `json:"annotations,omitempty"`
}

type config struct {
	Created      time.Time     `json:"created"`
	OS           string        `json:"os"`
	Architecture string        `json:"architecture"`
	Variant      string        `json:"variant,omitempty"`
	Config       runtimeConfig `json:"config"`
	RootFS       rootFS        `json:"rootfs"`
}

type runtimeConfig struct {
	User       string            `json:"User"`
	Env        []string          `json:"Env,omitempty"`
	Entrypoint []string          `json:"Entrypoint"`
	WorkingDir string            `json:"WorkingDir"`
	Labels     map[string]string `json:"Labels"`
}

type rootFS struct {
	Type    string   `json:"type"`
	DiffIDs []string `json:"diff_ids"`
}
