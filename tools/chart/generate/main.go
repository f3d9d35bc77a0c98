// Generate writes the forms of installation that repeat the chart: plain manifests (deploy/manifests) and Kustomize bases with
// components (deploy/kustomize). Run it with go generate -C tools/chart ./generate.
package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"sigs.k8s.io/yaml"
)

//go:generate go run . ../../../deploy

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: generate DIRECTORY")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// run writes all forms into the directory that has the chart.
func run(deploy string) error {
	c, err := loadChart(filepath.Join(deploy, "helm", "vedette"))
	if err != nil {
		return err
	}
	for _, m := range manifests {
		objects, err := c.render(m.namespace, m.values)
		if err != nil {
			return fmt.Errorf("manifests/%s: %w", m.file, err)
		}
		if err := write(filepath.Join(deploy, "manifests", m.file), documents(objects)); err != nil {
			return err
		}
	}
	for _, directory := range []string{"server", "agent", "components"} {
		if err := os.RemoveAll(filepath.Join(deploy, "kustomize", directory)); err != nil {
			return err
		}
	}
	for _, b := range bases {
		files, err := b.files(c)
		if err != nil {
			return fmt.Errorf("kustomize/%s: %w", b.name, err)
		}
		if err := writeAll(filepath.Join(deploy, "kustomize", b.name), files); err != nil {
			return err
		}
	}
	for _, p := range components {
		files, err := p.files(c)
		if err != nil {
			return fmt.Errorf("kustomize/components/%s: %w", p.name, err)
		}
		if err := writeAll(filepath.Join(deploy, "kustomize", "components", p.name), files); err != nil {
			return err
		}
	}
	return nil
}

const header = "# Generated from deploy/helm/vedette by go generate -C tools/chart ./generate.\n"

func writeAll(directory string, files map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := write(filepath.Join(directory, name), files[name]); err != nil {
			return err
		}
	}
	return nil
}

func write(path, content string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(header+content), 0o644)
}

// encode returns content as YAML. What the chart renders can always be encoded.
func encode(content any) string {
	encoded, err := yaml.Marshal(content)
	if err != nil {
		panic(fmt.Sprintf("encode what the chart renders: %v", err))
	}
	return string(encoded)
}

// documents returns objects as one stream of YAML.
func documents(objects []object) string {
	var text string
	for i, o := range objects {
		if i > 0 {
			text += "---\n"
		}
		text += encode(o)
	}
	return text
}
