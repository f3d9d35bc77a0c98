package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"
)

// writeMaterials writes for each program which modules it contains (CycloneDX), and the licenses of these, which have to be
// handed on with it. Both are read from the program itself.
func (b *build) writeMaterials(ctx context.Context) error {
	directories, err := b.moduleDirectories(ctx)
	if err != nil {
		return err
	}
	for i := range b.binaries {
		bin := &b.binaries[i]
		info, err := buildinfo.ReadFile(bin.path)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("%s_%s_%s_%s", bin.program.name, b.number(), bin.os, bin.arch)
		bin.material = filepath.Join(b.out, name+".cdx.json")
		if err := b.writeMaterial(*bin, info); err != nil {
			return err
		}
		bin.notices = filepath.Join(b.out, "bin", name+".licenses")
		if err := writeNotices(bin.notices, info, directories); err != nil {
			return err
		}
	}
	return nil
}

// moduleDirectories returns where the source of each module lies, by path.
func (b *build) moduleDirectories(ctx context.Context) (map[string]string, error) {
	out, err := b.output(ctx, "go", "list", "-m", "-json", "all")
	if err != nil {
		return nil, err
	}
	directories := map[string]string{}
	for decoder := json.NewDecoder(strings.NewReader(out)); ; {
		var module struct{ Path, Dir string }
		if err := decoder.Decode(&module); errors.Is(err, io.EOF) {
			return directories, nil
		} else if err != nil {
			return nil, err
		}
		directories[module.Path] = module.Dir
	}
}

func (b *build) writeMaterial(bin binary, info *debug.BuildInfo) error {
	main := purl(info.Main.Path, b.version)
	root := cyclonedx.Component{BOMRef: main, Type: cyclonedx.ComponentTypeApplication, Name: bin.program.name, Version: b.version,
		PackageURL: main, Description: bin.program.summary,
		Licenses: &cyclonedx.Licenses{{License: &cyclonedx.License{ID: "Apache-2.0"}}}}
	standard := purl("std", info.GoVersion)
	components := []cyclonedx.Component{{BOMRef: standard, Type: cyclonedx.ComponentTypeLibrary, Name: "std", Version: info.GoVersion,
		PackageURL: standard}}
	references := []string{standard}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		ref := purl(module.Path, module.Version)
		components = append(components, cyclonedx.Component{BOMRef: ref, Type: cyclonedx.ComponentTypeLibrary, Name: module.Path,
			Version: module.Version, PackageURL: ref, Properties: &[]cyclonedx.Property{{Name: "go:sum", Value: module.Sum}}})
		references = append(references, ref)
	}
	bom := cyclonedx.NewBOM()
	bom.SerialNumber = "urn:uuid:" + uuid.NewSHA1(uuid.NameSpaceURL, []byte(sourceURL+"@"+b.revision+"/"+filepath.Base(bin.path))).String()
	bom.Metadata = &cyclonedx.Metadata{Timestamp: b.time.Format(time.RFC3339), Component: &root,
		Properties: &[]cyclonedx.Property{{Name: "go:os", Value: bin.os}, {Name: "go:arch", Value: bin.arch},
			{Name: "git:revision", Value: b.revision}}}
	bom.Components = &components
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: main, Dependencies: &references}}
	var buf bytes.Buffer
	if err := cyclonedx.NewBOMEncoder(&buf, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom); err != nil {
		return err
	}
	return os.WriteFile(bin.material, buf.Bytes(), 0o644)
}

// purl is the package URL of a Go module.
func purl(path, version string) string { return "pkg:golang/" + path + "@" + version }

// licenseFile matches the names of files that say under which terms a module may be used.
var licenseFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|copyright|patents)([-._].*)?$`)

// writeNotices collects what the licenses of a program's modules ask to be handed on.
func writeNotices(path string, info *debug.BuildInfo, directories map[string]string) error {
	var buf bytes.Buffer
	fmt.Fprintf(&buf, "This program contains Go %s and the following modules.\n", strings.TrimPrefix(info.GoVersion, "go"))
	for _, module := range info.Deps {
		dir, ok := directories[module.Path]
		if !ok || dir == "" {
			return fmt.Errorf("the source of module %s is not on this machine: run go mod download", module.Path)
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		count := 0
		for _, entry := range entries {
			if entry.IsDir() || !licenseFile.MatchString(entry.Name()) {
				continue
			}
			text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
			if err != nil {
				return err
			}
			fmt.Fprintf(&buf, "\n%s\n%s %s: %s\n\n%s\n", strings.Repeat("-", 80), module.Path, module.Version, entry.Name(), text)
			count++
		}
		if count == 0 {
			return fmt.Errorf("module %s has no file with a license in %s", module.Path, dir)
		}
	}
	return os.WriteFile(path, buf.Bytes(), 0o644)
}
