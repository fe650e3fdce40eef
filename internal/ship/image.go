// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package ship

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
)

const (
	// user is the one that is called nonroot by convention. It is given as a number because only that lets the kubelet
	// verify that it is not root.
	user = "65532:65532"
	// entrypoint is where the manager is in the image.
	entrypoint = "/manager"

	typeIndex    = "application/vnd.oci.image.index.v1+json"
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

// Program is the manager for one platform.
type Program struct {
	OS, Architecture string
	// Content is the static binary.
	Content []byte
}

// Layout is an image in the layout of the Open Container Initiative: the content of its files by their path.
type Layout map[string][]byte

// NewLayout makes an image that has nothing in it but the program, for each of the platforms. The same input makes the
// same image, byte by byte.
func NewLayout(programs []Program, version string, created time.Time) (Layout, error) {
	layout := Layout{"oci-layout": []byte(`{"imageLayoutVersion":"1.0.0"}`)}
	labels := map[string]string{
		"org.opencontainers.image.title":       ImageName,
		"org.opencontainers.image.description": "The controllers of Opdock's fleet",
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.version":     version,
		"org.opencontainers.image.created":     created.UTC().Format(time.RFC3339),
	}
	images := index{SchemaVersion: 2, MediaType: typeIndex, Annotations: labels}
	for _, program := range programs {
		manifest, err := layout.addImage(program, labels, created)
		if err != nil {
			return nil, fmt.Errorf("making the image for %s/%s: %w", program.OS, program.Architecture, err)
		}
		images.Manifests = append(images.Manifests, manifest)
	}
	all, err := layout.addJSON(typeIndex, images)
	if err != nil {
		return nil, err
	}
	all.Annotations = map[string]string{"org.opencontainers.image.ref.name": version}
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

func (l Layout) addImage(program Program, labels map[string]string, created time.Time) (descriptor, error) {
	content, err := layer(program.Content, created)
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
		Created: created.UTC(), OS: program.OS, Architecture: program.Architecture,
		Config: runtimeConfig{User: user, Entrypoint: []string{entrypoint}, WorkingDir: "/", Labels: labels},
		RootFS: rootFS{Type: "layers", DiffIDs: []string{digest(content)}},
	}
	settingsAt, err := l.addJSON(typeConfig, settings)
	if err != nil {
		return descriptor{}, err
	}
	at, err := l.addJSON(typeManifest, manifest{
		SchemaVersion: 2, MediaType: typeManifest, Config: settingsAt,
		Layers: []descriptor{l.add(typeLayer, compressed.Bytes())}, Annotations: labels,
	})
	at.Platform = &platform{OS: program.OS, Architecture: program.Architecture}
	return at, err
}

// layer is a tar with the program as its only file.
func layer(program []byte, created time.Time) ([]byte, error) {
	var content bytes.Buffer
	writer := tar.NewWriter(&content)
	header := &tar.Header{Name: entrypoint[1:], Mode: 0o555, Size: int64(len(program)), ModTime: created.UTC(), Typeflag: tar.TypeReg, Format: tar.FormatPAX}
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
	Config       runtimeConfig `json:"config"`
	RootFS       rootFS        `json:"rootfs"`
}

type runtimeConfig struct {
	User       string            `json:"User"`
	Entrypoint []string          `json:"Entrypoint"`
	WorkingDir string            `json:"WorkingDir"`
	Labels     map[string]string `json:"Labels"`
}

type rootFS struct {
	Type    string   `json:"type"`
	DiffIDs []string `json:"diff_ids"`
}
