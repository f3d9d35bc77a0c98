package upgrade

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/vedette-io/vedette/test/cache"
)

//go:embed versions
var versionsFile string

// Version is a release.
type Version struct {
	Name   string // for example v0.1.0
	Commit string
}

// Versions returns all releases, the oldest first.
func Versions() (all []Version, err error) {
	for line := range strings.Lines(versionsFile) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0 || strings.HasPrefix(line, "#"):
		case len(fields) != 2 || !strings.HasPrefix(fields[0], "v") || len(fields[1]) != 40:
			return nil, fmt.Errorf("test/upgrade/versions: %q is not a version and the 40 digits of its commit", strings.TrimSpace(line))
		default:
			all = append(all, Version{fields[0], fields[1]})
		}
	}
	if len(all) == 0 {
		return nil, errors.New("test/upgrade/versions names no version")
	}
	return all, nil
}

// Previous returns the newest release.
func Previous() (Version, error) {
	all, err := Versions()
	if err != nil {
		return Version{}, err
	}
	return all[len(all)-1], nil
}

// git runs git in the repository of the working directory.
func git(ctx context.Context, args ...string) ([]byte, error) {
	var errOut bytes.Buffer
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git %s: %w: %s", args[0], err, bytes.TrimSpace(errOut.Bytes()))
	}
	return out, nil
}

// check returns an error if the repository does not have the version's commit.
func (v Version) check(ctx context.Context) error {
	if _, err := git(ctx, "cat-file", "-e", v.Commit+"^{commit}"); err != nil {
		return fmt.Errorf("the repository does not have commit %s of %s, with which this version is compared: get the whole history with "+
			"\"git fetch --unshallow\", or the commit alone with \"git fetch origin %s\": %w", v.Commit, v.Name, v.Commit, err)
	}
	return nil
}

// ReadFile returns a file of the version, by its path in the repository.
func (v Version) ReadFile(ctx context.Context, path string) ([]byte, error) {
	if err := v.check(ctx); err != nil {
		return nil, err
	}
	return git(ctx, "show", v.Commit+":"+path)
}

// Extract writes the files of the version below a path of the repository into a directory.
func (v Version) Extract(ctx context.Context, path, dir string) error {
	if err := v.check(ctx); err != nil {
		return err
	}
	top, err := git(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	archive, err := git(ctx, "-C", strings.TrimSpace(string(top)), "archive", "--format=tar", v.Commit, path)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "tar", "-x", "-C", dir)
	cmd.Stdin = bytes.NewReader(archive)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("unpack %s: %w: %s", v.Name, err, out)
	}
	return nil
}

// Build returns the directory of the version's programs, which it builds once: vedette/upgrade in os.UserCacheDir, or upgrade in the
// directory VEDETTE_CACHE. Processes that build at the same time do not disturb each other.
func (v Version) Build(ctx context.Context) (dir string, err error) {
	base, err := cache.Dir("upgrade")
	if err != nil {
		return "", err
	}
	dir = filepath.Join(base, fmt.Sprintf("%s-%.12s-%s-%s-%s", v.Name, v.Commit, runtime.Version(), runtime.GOOS, runtime.GOARCH))
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	work, err := os.MkdirTemp(base, "build-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	source, bin := filepath.Join(work, "source"), filepath.Join(work, "bin")
	if err := errors.Join(os.Mkdir(source, 0o755), os.Mkdir(bin, 0o755)); err != nil {
		return "", err
	}
	if err := v.Extract(ctx, ".", source); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-tags", "grpcnotrace,disable_grpc_modules",
		"-ldflags", "-s -w -X github.com/vedette-io/vedette/internal/version.version="+v.Name, "-o", bin+string(filepath.Separator), "./cmd/...")
	cmd.Dir = source
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=readonly")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", v.Name, err, out)
	}
	if err := os.Rename(bin, dir); err != nil {
		if _, statErr := os.Stat(dir); statErr == nil { // another process was faster
			return dir, nil
		}
		return "", err
	}
	return dir, nil
}
