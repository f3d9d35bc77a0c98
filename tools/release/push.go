package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// push sends the images of a directory, with their signatures, to REPOSITORY/vedette-server and REPOSITORY/vedette-agent, and the
// chart to REPOSITORY/charts/vedette.
func push(ctx context.Context, dir, repository string, insecure bool) error {
	archives, err := filepath.Glob(filepath.Join(dir, "*.oci.tar"))
	if err != nil {
		return err
	}
	if len(archives) == 0 {
		return fmt.Errorf("directory %s has no images (*.oci.tar)", dir)
	}
	for _, archive := range archives {
		image, _, _ := strings.Cut(filepath.Base(archive), "_")
		if err := pushImage(ctx, archive, repository+"/"+image, insecure); err != nil {
			return fmt.Errorf("%s: %w", image, err)
		}
	}
	charts, err := filepath.Glob(filepath.Join(dir, chartName+"-*.tgz"))
	if err != nil {
		return err
	}
	for _, archive := range charts {
		if err := pushChart(ctx, archive, repository+"/charts/"+chartName, insecure); err != nil {
			return fmt.Errorf("chart %s: %w", filepath.Base(archive), err)
		}
	}
	return nil
}

func pushChart(ctx context.Context, archive, repository string, insecure bool) error {
	content, err := os.ReadFile(archive)
	if err != nil {
		return err
	}
	artifact, metadata, err := newChartArtifact(content)
	if err != nil {
		return err
	}
	tag, err := name.NewTag(repository+":"+metadata.Version, nameOptions(insecure)...)
	if err != nil {
		return err
	}
	if err := remote.Write(tag, artifact, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return err
	}
	digest, err := artifact.Digest()
	if err != nil {
		return err
	}
	fmt.Printf("%s@%s\n", tag, digest)
	return nil
}

func nameOptions(insecure bool) (options []name.Option) {
	if insecure {
		options = append(options, name.Insecure)
	}
	return options
}

// metadataIn returns what the Chart.yaml of a packed chart says.
func metadataIn(archive []byte) (chartMetadata, error) {
	unpacked, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return chartMetadata{}, err
	}
	for reader := tar.NewReader(unpacked); ; {
		header, err := reader.Next()
		if err != nil {
			return chartMetadata{}, fmt.Errorf("find Chart.yaml: %w", err)
		}
		if header.Name != chartName+"/Chart.yaml" {
			continue
		}
		content, err := io.ReadAll(io.LimitReader(reader, 1<<20))
		if err != nil {
			return chartMetadata{}, err
		}
		return parseChartMetadata(content)
	}
}

func pushImage(ctx context.Context, archive, repository string, insecure bool) error {
	dir, err := os.MkdirTemp("", "vedette-push")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := extract(archive, dir); err != nil {
		return err
	}
	path, err := layout.FromPath(dir)
	if err != nil {
		return err
	}
	root, err := path.ImageIndex()
	if err != nil {
		return err
	}
	manifest, err := root.IndexManifest()
	if err != nil {
		return err
	}
	for _, d := range manifest.Manifests {
		tag, err := name.NewTag(repository+":"+d.Annotations[refName], nameOptions(insecure)...)
		if err != nil {
			return err
		}
		with := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
		if d.MediaType.IsIndex() {
			index, err := root.ImageIndex(d.Digest)
			if err != nil {
				return err
			}
			err = remote.WriteIndex(tag, index, with...)
			if err != nil {
				return err
			}
		} else {
			image, err := root.Image(d.Digest)
			if err != nil {
				return err
			}
			if err := remote.Write(tag, image, with...); err != nil {
				return err
			}
		}
		fmt.Printf("%s@%s\n", tag, d.Digest)
	}
	return nil
}

// extract unpacks an OCI layout.
func extract(archive, dir string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for reader := tar.NewReader(f); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if header.Typeflag == tar.TypeDir {
			if err := root.MkdirAll(filepath.FromSlash(strings.TrimSuffix(header.Name, "/")), 0o755); err != nil {
				return err
			}
			continue
		}
		out, err := root.Create(filepath.FromSlash(header.Name))
		if err != nil {
			return err
		}
		if _, err := io.Copy(out, reader); err != nil {
			out.Close()
			return err
		}
		if err := out.Close(); err != nil {
			return err
		}
	}
}
