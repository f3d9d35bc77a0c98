package main

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/go-containerregistry/pkg/compression"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// maxImage is how much one image of one platform may take, compressed.
const maxImage = 25 << 20

// user is who runs the programs: the number that images without root commonly use.
const user = 65532

const (
	sourceURL        = "https://github.com/vedette-io/vedette"
	annotationPrefix = "org.opencontainers.image."
	refName          = annotationPrefix + "ref.name"
)

// A file is one of a layer.
type file struct {
	path    string // absolute
	mode    int64
	owner   int
	content []byte
	dir     bool
}

// writeImages writes an OCI layout with an index of both platforms for each program that runs in clusters.
func (b *build) writeImages(context.Context) error {
	b.digests = map[string]v1.Hash{}
	base, err := b.newLayer(baseFiles())
	if err != nil {
		return err
	}
	for _, name := range []string{"vedette-server", "vedette-agent"} {
		index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
		count := 0
		for _, bin := range b.binaries {
			if bin.program.name != name {
				continue
			}
			image, err := b.newImage(base, bin)
			if err != nil {
				return fmt.Errorf("%s for %s: %w", name, bin.arch, err)
			}
			index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image,
				Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: bin.os, Architecture: bin.arch}}})
			count++
		}
		if count == 0 {
			continue
		}
		index = mutate.Annotations(index, b.annotations(name)).(v1.ImageIndex)
		if err := b.writeLayout(name, index); err != nil {
			return err
		}
		digest, err := index.Digest()
		if err != nil {
			return err
		}
		b.digests[name] = digest
	}
	return nil
}

func (b *build) annotations(name string) map[string]string {
	i := slices.IndexFunc(programs, func(p program) bool { return p.name == name })
	return map[string]string{
		annotationPrefix + "title": name, annotationPrefix + "description": programs[i].summary,
		annotationPrefix + "version": b.version, annotationPrefix + "revision": b.revision,
		annotationPrefix + "created": b.time.Format(time.RFC3339), annotationPrefix + "source": sourceURL,
		annotationPrefix + "licenses": "Apache-2.0",
	}
}

// baseFiles is what a program needs of a system: authorities, names of users, and a directory for temporary files.
func baseFiles() []file {
	var authorities bytes.Buffer
	for root := range bundle.Roots() {
		// A file cannot say that a root counts only for certificates issued before some day, so such roots are left out.
		if root.Constraint != nil {
			continue
		}
		_ = pem.Encode(&authorities, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // A buffer does not fail.
	}
	return []file{
		{path: "/etc", mode: 0o755, dir: true},
		{path: "/etc/group", mode: 0o644, content: fmt.Appendf(nil, "root:x:0:\nvedette:x:%d:\n", user)},
		{path: "/etc/passwd", mode: 0o644, content: fmt.Appendf(nil,
			"root:x:0:0:root:/:/sbin/nologin\nvedette:x:%d:%[1]d:Vedette:/var/lib/vedette:/sbin/nologin\n", user)},
		{path: "/etc/ssl", mode: 0o755, dir: true},
		{path: "/etc/ssl/certs", mode: 0o755, dir: true},
		{path: "/etc/ssl/certs/ca-certificates.crt", mode: 0o644, content: authorities.Bytes()},
		{path: "/opt", mode: 0o755, dir: true},
		{path: "/opt/vedette", mode: 0o755, dir: true},
		{path: "/opt/vedette/config", mode: 0o755, dir: true},
		{path: "/tmp", mode: 0o1777, dir: true},
		{path: "/var", mode: 0o755, dir: true},
		{path: "/var/lib", mode: 0o755, dir: true},
		{path: "/var/lib/vedette", mode: 0o700, owner: user, dir: true},
	}
}

// newImage returns the image of a program for one platform.
func (b *build) newImage(base v1.Layer, bin binary) (v1.Image, error) {
	program, err := os.ReadFile(bin.path)
	if err != nil {
		return nil, err
	}
	notices, err := os.ReadFile(bin.notices)
	if err != nil {
		return nil, err
	}
	license, err := os.ReadFile(filepath.Join(b.root, "LICENSE"))
	if err != nil {
		return nil, err
	}
	layer, err := b.newLayer([]file{
		{path: "/usr", mode: 0o755, dir: true},
		{path: "/usr/bin", mode: 0o755, dir: true},
		{path: "/usr/bin/" + bin.program.name, mode: 0o755, content: program},
		{path: "/usr/share", mode: 0o755, dir: true},
		{path: "/usr/share/doc", mode: 0o755, dir: true},
		{path: "/usr/share/doc/" + bin.program.name, mode: 0o755, dir: true},
		{path: "/usr/share/doc/" + bin.program.name + "/LICENSE", mode: 0o644, content: license},
		{path: "/usr/share/doc/" + bin.program.name + "/THIRD-PARTY-LICENSES", mode: 0o644, content: notices},
	})
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	created := v1.History{Created: v1.Time{Time: b.time}, CreatedBy: "make release"}
	image, err = mutate.Append(image, mutate.Addendum{Layer: base, History: created, MediaType: types.OCILayer},
		mutate.Addendum{Layer: layer, History: created, MediaType: types.OCILayer})
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = bin.os, bin.arch
	config.Created = v1.Time{Time: b.time}
	config.Config = v1.Config{
		User: fmt.Sprintf("%d:%[1]d", user), Entrypoint: []string{"/usr/bin/" + bin.program.name}, WorkingDir: "/var/lib/vedette",
		Env: []string{"PATH=/usr/bin:/plugins", "HOME=/var/lib/vedette"}, Labels: b.annotations(bin.program.name),
	}
	image, err = mutate.ConfigFile(image, config)
	if err != nil {
		return nil, err
	}
	image = mutate.Annotations(image, b.annotations(bin.program.name)).(v1.Image)
	size, err := compressedSize(image)
	if err != nil {
		return nil, err
	}
	if size > maxImage {
		return nil, fmt.Errorf("it takes %d bytes compressed, and %d are allowed", size, maxImage)
	}
	return image, nil
}

// compressedSize is what a node loads to run an image.
func compressedSize(image v1.Image) (int64, error) {
	manifest, err := image.Manifest()
	if err != nil {
		return 0, err
	}
	size := manifest.Config.Size
	for _, layer := range manifest.Layers {
		size += layer.Size
	}
	return size, nil
}

func (b *build) newLayer(files []file) (v1.Layer, error) {
	var buf bytes.Buffer
	if err := writeTar(&buf, files, b.time); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(buf.Bytes())), nil },
		tarball.WithCompression(compression.GZip), tarball.WithCompressionLevel(b.level), tarball.WithMediaType(types.OCILayer))
}

// writeTar writes files in their order with the owner, mode and time that are given, and nothing of this machine.
func writeTar(w io.Writer, files []file, at time.Time) error {
	t := tar.NewWriter(w)
	for _, f := range files {
		header := &tar.Header{Name: f.path[1:], Mode: f.mode, Uid: f.owner, Gid: f.owner, Size: int64(len(f.content)), ModTime: at,
			Typeflag: tar.TypeReg, Format: tar.FormatPAX}
		if f.dir {
			header.Name, header.Typeflag = header.Name+"/", tar.TypeDir
		}
		if err := t.WriteHeader(header); err != nil {
			return err
		}
		if _, err := t.Write(f.content); err != nil {
			return err
		}
	}
	return t.Close()
}

// writeLayout writes an OCI layout as one file, which docker load, podman load and ctr images import read, and signs it
// if there is a key.
func (b *build) writeLayout(name string, index v1.ImageIndex) error {
	dir, err := os.MkdirTemp(b.out, ".layout")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	reference := name + ":" + b.version
	if err := path.AppendIndex(index, layout.WithAnnotations(map[string]string{
		refName: b.version, "io.containerd.image.name": reference})); err != nil {
		return err
	}
	if b.key != "" {
		if err := b.signImage(path, name, index); err != nil {
			return err
		}
	}
	return b.writeTarOf(dir, filepath.Join(b.out, fmt.Sprintf("%s_%s.oci.tar", name, b.number())))
}

// writeTarOf writes a directory's files, ordered by path.
func (b *build) writeTarOf(dir, target string) error {
	var files []file
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		f := file{path: "/" + filepath.ToSlash(path[len(dir)+1:]), mode: 0o644, dir: entry.IsDir()}
		if f.dir {
			f.mode = 0o755
		} else if f.content, err = os.ReadFile(path); err != nil {
			return err
		}
		files = append(files, f)
		return nil
	})
	if err != nil {
		return err
	}
	out, err := os.Create(target)
	if err != nil {
		return err
	}
	if err := writeTar(out, files, b.time); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}
