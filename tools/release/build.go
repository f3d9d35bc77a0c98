package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// A program is one of the commands that are released.
type program struct {
	name      string
	summary   string
	platforms []string
}

var programs = []program{
	{"vedette-server", "Keeps what agents report about Kubernetes clusters, and answers Spinnaker's Clouddriver API", linux},
	{"vedette-agent", "Watches Kubernetes clusters and streams every change to a server", linux},
	{"vedette", "Looks at and steers a fleet of Vedette's agents", slices.Concat(linux, others)},
}

var (
	linux  = []string{"linux/amd64", "linux/arm64"}
	others = []string{"darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"}
)

func allPlatforms() []string { return slices.Concat(linux, others) }

// A build is what makes one release.
type build struct {
	version   string
	root      string
	out       string
	key       string
	platforms []string
	level     int  // of compression, 1 to 9
	anyState  bool // of the checkout, for tests

	onlyImages bool // and programs, for tests

	time     time.Time // of the commit
	revision string
	binaries []binary
	digests  map[string]v1.Hash // of images, by name
}

// A binary is a program for a platform.
type binary struct {
	program  program
	os       string
	arch     string
	path     string
	notices  string // file with the licenses of what is in it
	material string // file with the bill of materials
}

func (b *build) run(ctx context.Context) error {
	if err := b.check(ctx); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(b.out, "bin"), 0o755); err != nil {
		return err
	}
	steps := []struct {
		name string
		run  func(context.Context) error
	}{
		{"programs", b.buildPrograms},
		{"bills of materials", b.writeMaterials},
		{"images", b.writeImages},
		{"chart", b.writeChart},
		{"manifests", b.writeManifests},
		{"packages", b.writePackages},
		{"archives", b.writeArchives},
		{"checksums", b.writeChecksums},
	}
	if b.onlyImages {
		steps = steps[:3]
	}
	for _, step := range steps {
		start := time.Now()
		if err := step.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		fmt.Printf("%-20s %s\n", step.name, time.Since(start).Round(time.Millisecond))
	}
	if b.onlyImages {
		return nil
	}
	return b.report()
}

// check fills in what the commit says, and refuses what would be found wrong only after minutes.
func (b *build) check(ctx context.Context) error {
	v, err := semver.StrictNewVersion(strings.TrimPrefix(b.version, "v"))
	if err != nil || !strings.HasPrefix(b.version, "v") {
		return fmt.Errorf("version %q is none of semantic versioning with a v before it, such as v0.1.0", b.version)
	}
	if v.Metadata() != "" {
		return fmt.Errorf("version %q has build metadata (%q), which a tag of an image cannot have", b.version, v.Metadata())
	}
	for _, p := range b.platforms {
		if !slices.Contains(allPlatforms(), p) {
			return fmt.Errorf("unknown platform %q: these are known: %s", p, strings.Join(allPlatforms(), ", "))
		}
	}
	if b.key != "" {
		if _, err := readPrivateKey(b.key); err != nil {
			return err
		}
	}
	entries, err := os.ReadDir(b.out)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if len(entries) > 0 {
		return fmt.Errorf("directory %s is not empty: remove it, so that a release consists of nothing older", b.out)
	}
	if b.out, err = filepath.Abs(b.out); err != nil {
		return err
	}
	if err := errors.Join(b.checkGo(ctx), b.checkCheckout(ctx)); err != nil {
		return err
	}
	commit, err := b.output(ctx, "git", "log", "-1", "--format=%ct %H")
	if err != nil {
		return err
	}
	seconds, revision, _ := strings.Cut(strings.TrimSpace(commit), " ")
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return fmt.Errorf("time of the commit: %w", err)
	}
	b.time, b.revision = time.Unix(unix, 0).UTC(), revision
	return nil
}

// checkCheckout refuses a checkout with changes, because the release would not be what its commit says. Settings of this machine or of the
// clone hide some: files that only they ignore, and such of which git was told to assume that they are unchanged.
func (b *build) checkCheckout(ctx context.Context) error {
	if b.anyState {
		return nil
	}
	for _, args := range [][]string{
		{"status", "--porcelain", "--untracked-files=no"},
		{"ls-files", "--others", "--exclude-per-directory=.gitignore"},
	} {
		changes, err := b.output(ctx, "git", args...)
		if err != nil {
			return err
		}
		if changes != "" {
			first, _, _ := strings.Cut(changes, "\n")
			return fmt.Errorf("the checkout has changes that no commit has, such as %q: commit or remove them", first)
		}
	}
	listed, err := b.output(ctx, "git", "ls-files", "-v")
	if err != nil {
		return err
	}
	for line := range strings.Lines(listed) {
		if tag, path, _ := strings.Cut(strings.TrimSpace(line), " "); tag != "H" {
			return fmt.Errorf("git is told not to look for changes of %q: see git update-index --no-assume-unchanged and --no-skip-worktree", path)
		}
	}
	return nil
}

// checkGo refuses what would change programs and cannot be overridden.
func (b *build) checkGo(ctx context.Context) error {
	experiment, err := b.output(ctx, "go", "env", "GOEXPERIMENT")
	if err != nil || strings.TrimSpace(experiment) == "" {
		return err
	}
	return fmt.Errorf("GOEXPERIMENT is %s, which changes programs: unset it (go env -u GOEXPERIMENT)", strings.TrimSpace(experiment))
}

// environment returns that of git and go. An empty variable of go would mean what "go env -w" has written, so each has a value.
func environment(more ...string) []string {
	env := slices.DeleteFunc(os.Environ(), func(variable string) bool { return strings.HasPrefix(variable, "GIT_") })
	return append(append(env, "CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOWORK=off", "GOFIPS140=off", "GOAMD64=v1", "GOARM64=v8.0"), more...)
}

// number is the version without the v before it, as packages and charts have it.
func (b *build) number() string { return strings.TrimPrefix(b.version, "v") }

// output runs a program in the repository, and returns what it printed.
func (b *build) output(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = b.root, environment()
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(errOut.String()))
	}
	return string(out), nil
}

// buildPrograms builds each program for each platform that is asked for.
func (b *build) buildPrograms(ctx context.Context) error {
	for _, p := range programs {
		for _, platform := range p.platforms {
			if !slices.Contains(b.platforms, platform) {
				continue
			}
			goos, arch, _ := strings.Cut(platform, "/")
			path := filepath.Join(b.out, "bin", fmt.Sprintf("%s_%s_%s", p.name, goos, arch))
			if goos == "windows" {
				path += ".exe"
			}
			// The same flags as in the Makefile, so that nothing is compiled twice. Paths, the state of the checkout and the time of the
			// build are not in the result.
			cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-tags", "grpcnotrace,disable_grpc_modules",
				"-ldflags", "-s -w -buildid= -X github.com/vedette-io/vedette/internal/version.version="+b.version,
				"-o", path, "./cmd/"+p.name)
			cmd.Dir, cmd.Stderr = b.root, os.Stderr
			cmd.Env = environment("GOOS="+goos, "GOARCH="+arch)
			if err := cmd.Run(); err != nil {
				return fmt.Errorf("%s for %s: %w", p.name, platform, err)
			}
			b.binaries = append(b.binaries, binary{program: p, os: goos, arch: arch, path: path})
		}
	}
	if len(b.binaries) == 0 {
		return errors.New("nothing to build")
	}
	return nil
}
