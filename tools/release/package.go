package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// shells are those for which the command-line tool comes with completions, with the file that each reads by format of packages.
var shells = map[string]map[string]string{
	"bash": {"deb": "/usr/share/bash-completion/completions/vedette", "rpm": "/usr/share/bash-completion/completions/vedette"},
	"zsh":  {"deb": "/usr/share/zsh/vendor-completions/_vedette", "rpm": "/usr/share/zsh/site-functions/_vedette"},
	"fish": {"deb": "/usr/share/fish/vendor_completions.d/vedette.fish", "rpm": "/usr/share/fish/vendor_completions.d/vedette.fish"},
}

// writePackages writes a package for Debian and one for Red Hat's systems for each program and each architecture of Linux.
func (b *build) writePackages(ctx context.Context) error {
	staging, err := os.MkdirTemp(b.out, ".packages")
	if err != nil {
		return err
	}
	defer os.RemoveAll(staging)
	s := stage{build: b, dir: staging}
	for _, bin := range b.binaries {
		if bin.os != "linux" {
			continue
		}
		for _, format := range []string{"deb", "rpm"} {
			contents, err := s.contents(ctx, bin, format)
			if err != nil {
				return err
			}
			if err := s.pack(format, bin, contents); err != nil {
				return fmt.Errorf("%s of %s for %s: %w", format, bin.program.name, bin.arch, err)
			}
		}
	}
	return nil
}

// A stage holds the files of packages that do not lie in the repository as they are packed.
type stage struct {
	*build

	dir   string
	count int
}

// write returns the path of a new file with content.
func (s *stage) write(content []byte) (string, error) {
	s.count++
	path := filepath.Join(s.dir, fmt.Sprint(s.count))
	return path, os.WriteFile(path, content, 0o600)
}

func (s *stage) pack(format string, bin binary, contents files.Contents) error {
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	compression := fmt.Sprintf("gzip:%d", s.level)
	info := &nfpm.Info{
		Name: bin.program.name, Arch: bin.arch, Platform: "linux", Version: s.version, VersionSchema: "semver", Section: "admin",
		Priority: "optional", Maintainer: "Vedette's maintainers <" + sourceURL + ">", Vendor: "Vedette", Homepage: sourceURL,
		Description: bin.program.summary, License: "Apache-2.0", MTime: s.time, DisableGlobbing: true,
		Overridables: nfpm.Overridables{Contents: contents,
			RPM: nfpm.RPM{BuildHost: "vedette", Group: "System/Management", Summary: bin.program.summary, Compression: compression},
			Deb: nfpm.Deb{Compression: compression}},
	}
	if isService(bin.program.name) {
		info.Depends = []string{"systemd"}
		scripts, err := s.scripts(bin.program.name)
		if err != nil {
			return err
		}
		info.Scripts = scripts
	}
	info = nfpm.WithDefaults(info)
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return err
	}
	var buf bytes.Buffer
	if err := packager.Package(info, &buf); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.out, packager.ConventionalFileName(info)), buf.Bytes(), 0o644)
}

func isService(name string) bool {
	return slices.Contains([]string{"vedette-server", "vedette-agent"}, name)
}

// contents are the files of a program's package in a format.
func (s *stage) contents(ctx context.Context, bin binary, format string) (files.Contents, error) {
	name := bin.program.name
	contents := files.Contents{
		s.file(bin.path, "/usr/bin/"+name, 0o755),
		s.file(filepath.Join(s.root, "LICENSE"), "/usr/share/doc/"+name+"/LICENSE", 0o644),
		s.file(bin.notices, "/usr/share/doc/"+name+"/THIRD-PARTY-LICENSES", 0o644),
	}
	pages, err := s.manPages(ctx, name)
	if err != nil {
		return nil, err
	}
	for _, page := range slices.Sorted(maps.Keys(pages)) {
		content, err := compressed(pages[page])
		if err != nil {
			return nil, err
		}
		path, err := s.write(content)
		if err != nil {
			return nil, err
		}
		contents = append(contents, s.file(path, "/usr/share/man/"+page+".gz", 0o644))
	}
	if isService(name) {
		unit, err := os.ReadFile(s.deploy("systemd", name+".service"))
		if err != nil {
			return nil, err
		}
		// Programs that are installed by hand lie in /usr/local.
		path, err := s.write(bytes.ReplaceAll(unit, []byte("/usr/local/bin/"), []byte("/usr/bin/")))
		if err != nil {
			return nil, err
		}
		return append(contents, s.file(path, "/usr/lib/systemd/system/"+name+".service", 0o644),
			s.file(s.deploy("systemd", name+".sysusers.conf"), "/usr/lib/sysusers.d/"+name+".conf", 0o644),
			s.file(s.deploy("systemd", name+".tmpfiles.conf"), "/usr/lib/tmpfiles.d/"+name+".conf", 0o644)), nil
	}
	contents = append(contents,
		&files.Content{Source: name, Destination: "/usr/bin/kubectl-" + name, Type: files.TypeSymlink,
			FileInfo: &files.ContentFileInfo{MTime: s.time}},
		s.file(s.deploy("packages", "kubectl_complete-vedette"), "/usr/bin/kubectl_complete-vedette", 0o755))
	for _, shell := range slices.Sorted(maps.Keys(shells)) {
		text, err := s.completion(ctx, shell)
		if err != nil {
			return nil, err
		}
		path, err := s.write(text)
		if err != nil {
			return nil, err
		}
		contents = append(contents, s.file(path, shells[shell][format], 0o644))
	}
	return contents, nil
}

func (s *stage) file(source, destination string, mode os.FileMode) *files.Content {
	return &files.Content{Source: source, Destination: destination,
		FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: mode, MTime: s.time}}
}

// scripts are what a package manager runs when it installs or removes a service.
func (s *stage) scripts(name string) (nfpm.Scripts, error) {
	var paths [3]string
	for i, script := range []string{"postinstall.sh", "preremove.sh", "postremove.sh"} {
		text, err := os.ReadFile(s.deploy("packages", script))
		if err != nil {
			return nfpm.Scripts{}, err
		}
		paths[i], err = s.write(append([]byte("#!/bin/sh\n"), bytes.ReplaceAll(text, []byte("@NAME@"), []byte(name))...))
		if err != nil {
			return nfpm.Scripts{}, err
		}
	}
	return nfpm.Scripts{PostInstall: paths[0], PreRemove: paths[1], PostRemove: paths[2]}, nil
}

// deploy returns the path of a file that installations use.
func (b *build) deploy(parts ...string) string {
	return filepath.Join(append([]string{b.root, "deploy"}, parts...)...)
}

// completion returns the script by which a shell completes the command-line tool.
func (b *build) completion(ctx context.Context, shell string) ([]byte, error) {
	bin, err := b.runnable("vedette")
	if err != nil {
		return nil, err
	}
	out, err := exec.CommandContext(ctx, bin.path, "completion", shell).Output()
	if err != nil {
		return nil, fmt.Errorf("vedette completion %s: %w", shell, err)
	}
	if !strings.Contains(string(out), "vedette") {
		return nil, fmt.Errorf("vedette completion %s printed no script", shell)
	}
	return out, nil
}
