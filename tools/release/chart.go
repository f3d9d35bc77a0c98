package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"go.yaml.in/yaml/v3"
)

// Media types by which Helm knows a chart in a registry.
const (
	chartConfigType types.MediaType = "application/vnd.cncf.helm.config.v1+json"
	chartLayerType  types.MediaType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

const chartName = "vedette"

func (b *build) chartDir() string { return b.deploy("helm", chartName) }

func (b *build) chartFile() string { return fmt.Sprintf("%s-%s.tgz", chartName, b.number()) }

// writeChart writes the Helm chart with the versions of the release.
func (b *build) writeChart(context.Context) error {
	var files []file
	err := filepath.WalkDir(b.chartDir(), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasPrefix(entry.Name(), ".") {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(path[len(b.chartDir()):])
		if name == "/Chart.yaml" {
			if content, err = b.chartMetadata(content); err != nil {
				return err
			}
		}
		files = append(files, file{path: "/" + chartName + name, mode: 0o644, content: content})
		return nil
	})
	if err != nil {
		return err
	}
	// Helm reads Chart.yaml first.
	slices.SortStableFunc(files, func(x, y file) int {
		isFirst := map[bool]int{true: 0, false: 1}
		return isFirst[strings.HasSuffix(x.path, "/Chart.yaml")] - isFirst[strings.HasSuffix(y.path, "/Chart.yaml")]
	})
	var archive bytes.Buffer
	w, err := gzip.NewWriterLevel(&archive, b.level)
	if err != nil {
		return err
	}
	if err := writeTar(w, files, b.time); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(b.out, b.chartFile()), archive.Bytes(), 0o644)
}

// chartMetadata returns Chart.yaml with the versions of the release.
func (b *build) chartMetadata(content []byte) ([]byte, error) {
	v, err := semver.StrictNewVersion(b.number())
	if err != nil {
		return nil, fmt.Errorf("version %s: %w", b.version, err)
	}
	for key, value := range map[string]string{"version": b.number(), "appVersion": b.version,
		"  artifacthub.io/prerelease": fmt.Sprintf("%q", fmt.Sprint(v.Prerelease() != ""))} {
		line := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(key) + `: .*$`)
		if found := len(line.FindAll(content, -1)); found != 1 {
			return nil, fmt.Errorf("there are %d lines %q in Chart.yaml, want one", found, strings.TrimSpace(key))
		}
		content = line.ReplaceAll(content, []byte(key+": "+value))
	}
	return content, nil
}

// writeManifests writes the plain manifests with the release's images by digest, so that they run these and no others.
func (b *build) writeManifests(context.Context) error {
	metadata, err := readChartMetadata(filepath.Join(b.chartDir(), "Chart.yaml"))
	if err != nil {
		return err
	}
	paths, err := filepath.Glob(b.deploy("manifests", "*.yaml"))
	if err != nil {
		return err
	}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		const label = "app.kubernetes.io/version: "
		text := strings.ReplaceAll(string(content), label+metadata.AppVersion+"\n", label+b.version+"\n")
		for name, digest := range b.digests {
			text = strings.ReplaceAll(text, "/"+name+":"+metadata.AppVersion+"\n", "/"+name+"@"+digest.String()+"\n")
		}
		if strings.Contains(text, ":"+metadata.AppVersion+"\n") {
			if len(b.digests) == 0 {
				return nil // a release without images, for other platforms
			}
			return fmt.Errorf("%s: an image is none of the release's", filepath.Base(path))
		}
		if err := os.WriteFile(filepath.Join(b.out, filepath.Base(path)), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// chartMetadata is what Chart.yaml says, as far as a registry shows it.
type chartMetadata struct {
	APIVersion  string            `yaml:"apiVersion" json:"apiVersion"`
	Name        string            `yaml:"name" json:"name"`
	Description string            `yaml:"description" json:"description"`
	Type        string            `yaml:"type" json:"type"`
	Version     string            `yaml:"version" json:"version"`
	AppVersion  string            `yaml:"appVersion" json:"appVersion"`
	KubeVersion string            `yaml:"kubeVersion" json:"kubeVersion"`
	Home        string            `yaml:"home" json:"home"`
	Sources     []string          `yaml:"sources" json:"sources"`
	Keywords    []string          `yaml:"keywords" json:"keywords"`
	Annotations map[string]string `yaml:"annotations" json:"annotations"`
}

func readChartMetadata(path string) (m chartMetadata, err error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return m, err
	}
	return parseChartMetadata(content)
}

func parseChartMetadata(content []byte) (m chartMetadata, err error) {
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	decoder.KnownFields(true)
	if err := decoder.Decode(&m); err != nil {
		return m, fmt.Errorf("read Chart.yaml: %w", err)
	}
	return m, nil
}

// newChartArtifact returns a chart as Helm stores it in a registry.
func newChartArtifact(archive []byte) (v1.Image, chartMetadata, error) {
	metadata, err := metadataIn(archive)
	if err != nil {
		return nil, metadata, err
	}
	config, err := json.Marshal(metadata)
	if err != nil {
		return nil, metadata, err
	}
	layer := static.NewLayer(archive, chartLayerType)
	descriptors := make([]v1.Descriptor, 2)
	for i, l := range []v1.Layer{static.NewLayer(config, chartConfigType), layer} {
		descriptor, err := partial.Descriptor(l)
		if err != nil {
			return nil, metadata, err
		}
		descriptors[i] = *descriptor
	}
	manifest, err := json.Marshal(v1.Manifest{SchemaVersion: 2, MediaType: types.OCIManifestSchema1, Config: descriptors[0],
		Layers: descriptors[1:], Annotations: map[string]string{
			annotationPrefix + "title": metadata.Name, annotationPrefix + "version": metadata.Version,
			annotationPrefix + "description": metadata.Description, annotationPrefix + "source": sourceURL,
			annotationPrefix + "url": metadata.Home}})
	if err != nil {
		return nil, metadata, err
	}
	image, err := partial.CompressedToImage(chartArtifact{config, manifest, layer})
	return image, metadata, err
}

// A chartArtifact is a manifest with a configuration and one layer.
type chartArtifact struct {
	config, manifest []byte
	layer            v1.Layer
}

func (a chartArtifact) RawConfigFile() ([]byte, error)      { return a.config, nil }
func (a chartArtifact) RawManifest() ([]byte, error)        { return a.manifest, nil }
func (a chartArtifact) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }
func (a chartArtifact) LayerByDigest(digest v1.Hash) (partial.CompressedLayer, error) {
	if known, err := a.layer.Digest(); err != nil || known != digest {
		return nil, fmt.Errorf("the chart has no layer %s", digest)
	}
	return a.layer, nil
}
