package main

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
)

// writeArchives writes an archive of each program for each platform, and the manifest by which Krew installs the command-line
// tool as a plugin of kubectl.
func (b *build) writeArchives(ctx context.Context) error {
	license, err := os.ReadFile(filepath.Join(b.root, "LICENSE"))
	if err != nil {
		return err
	}
	var plugins []plugin
	for _, bin := range b.binaries {
		program, err := os.ReadFile(bin.path)
		if err != nil {
			return err
		}
		notices, err := os.ReadFile(bin.notices)
		if err != nil {
			return err
		}
		name := bin.program.name
		if bin.os == "windows" {
			name += ".exe"
		}
		content := []file{
			{path: "/LICENSE", mode: 0o644, content: license},
			{path: "/THIRD-PARTY-LICENSES", mode: 0o644, content: notices},
			{path: "/" + name, mode: 0o755, content: program},
		}
		if bin.os != "windows" {
			pages, err := b.manPages(ctx, bin.program.name)
			if err != nil {
				return err
			}
			for _, page := range slices.Sorted(maps.Keys(pages)) {
				content = append(content, file{path: "/man/" + page, mode: 0o644, content: pages[page]})
			}
		}
		if bin.program.name == "vedette" && bin.os != "windows" {
			for _, shell := range slices.Sorted(maps.Keys(shells)) {
				text, err := b.completion(ctx, shell)
				if err != nil {
					return err
				}
				content = append(content, file{path: "/completions/vedette." + shell, mode: 0o644, content: text})
			}
		}
		archive, err := b.writeArchive(bin, content)
		if err != nil {
			return err
		}
		if bin.program.name != "vedette" {
			continue
		}
		sum, err := fileDigest(archive)
		if err != nil {
			return err
		}
		plugins = append(plugins, plugin{OS: bin.os, Arch: bin.arch, Archive: filepath.Base(archive), Sum: sum, Program: name})
	}
	return b.writeKrew(plugins)
}

func (b *build) writeArchive(bin binary, content []file) (string, error) {
	path := filepath.Join(b.out, fmt.Sprintf("%s_%s_%s_%s", bin.program.name, b.number(), bin.os, bin.arch))
	var buf bytes.Buffer
	if bin.os == "windows" {
		path += ".zip"
		w := zip.NewWriter(&buf)
		for _, f := range content {
			part, err := w.CreateHeader(&zip.FileHeader{Name: f.path[1:], Method: zip.Deflate, Modified: b.time})
			if err != nil {
				return "", err
			}
			if _, err := part.Write(f.content); err != nil {
				return "", err
			}
		}
		if err := w.Close(); err != nil {
			return "", err
		}
	} else {
		path += ".tar.gz"
		w, err := gzip.NewWriterLevel(&buf, b.level)
		if err != nil {
			return "", err
		}
		if err := writeTar(w, content, b.time); err != nil {
			return "", err
		}
		if err := w.Close(); err != nil {
			return "", err
		}
	}
	return path, os.WriteFile(path, buf.Bytes(), 0o644)
}

// A plugin is an archive that Krew installs on a platform.
type plugin struct{ OS, Arch, Archive, Sum, Program string }

var krewManifest = template.Must(template.New("krew").Parse(`apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: vedette
spec:
  version: {{.Version}}
  homepage: {{.Source}}
  shortDescription: Look at and steer clusters that Vedette watches
  description: |
    Shows the objects, events and operations of all clusters whose agents report to a
    Vedette server, and deploys, scales, patches and deletes in them.
  platforms:
{{- range .Plugins}}
  - selector:
      matchLabels:
        os: {{.OS}}
        arch: {{.Arch}}
    uri: {{$.Source}}/releases/download/{{$.Version}}/{{.Archive}}
    sha256: {{.Sum}}
    bin: {{.Program}}
{{- end}}
`))

func (b *build) writeKrew(plugins []plugin) error {
	if len(plugins) == 0 {
		return nil
	}
	var text strings.Builder
	err := krewManifest.Execute(&text, map[string]any{"Version": b.version, "Source": sourceURL, "Plugins": plugins})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(b.out, "krew_vedette.yaml"), []byte(text.String()), 0o644)
}
