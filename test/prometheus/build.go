package prometheus

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/vedette-io/vedette/test/cache"
)

// Binaries are the paths of Prometheus' programs.
type Binaries struct{ Prometheus, Promtool string }

// buildTags leave out service discovery and the agent-less cloud libraries that come with it, which
// make up most of Prometheus.
const buildTags = "remove_all_sd"

// modfile lists the modules of Prometheus, apart from ours.
const modfile = "tools/prometheus.mod"

// Build returns the programs from the cache, and builds them if they are missing, which takes some
// minutes once. The cache is vedette/prometheus in os.UserCacheDir, or prometheus in the directory
// VEDETTE_CACHE. It writes to log when it builds.
func Build(ctx context.Context, log io.Writer) (Binaries, error) {
	root, err := findRoot()
	if err != nil {
		return Binaries{}, err
	}
	dir, err := cacheDir(root)
	if err != nil {
		return Binaries{}, err
	}
	b := Binaries{Prometheus: filepath.Join(dir, "prometheus"), Promtool: filepath.Join(dir, "promtool")}
	if _, err := os.Stat(dir); err == nil {
		return b, nil
	}
	fmt.Fprintf(log, "prometheus: building Prometheus (once; cached in %s)\n", dir)
	return b, build(ctx, root, dir)
}

// build builds into a new directory, which it then renames: a directory with the final name is
// complete. If two processes build at the same time, one of them finds that the other was faster.
func build(ctx context.Context, root, dir string) error {
	partial, err := os.MkdirTemp(filepath.Dir(dir), "partial-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(partial)
	cmd := exec.CommandContext(ctx, "go", "build", "-modfile="+modfile, "-trimpath", "-buildvcs=false", "-tags", buildTags, "-ldflags", "-s -w",
		"-o", partial+string(filepath.Separator),
		"github.com/prometheus/prometheus/cmd/prometheus", "github.com/prometheus/prometheus/cmd/promtool")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build Prometheus: %w\n%s", err, out)
	}
	if err := os.Rename(partial, dir); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

// cacheDir returns the directory for the versions of modfile. Its parent exists.
func cacheDir(root string) (string, error) {
	modules, err := os.ReadFile(filepath.Join(root, modfile))
	if err != nil {
		return "", err
	}
	parent, err := cache.Dir("prometheus")
	if err != nil {
		return "", err
	}
	key := sha256.Sum256(fmt.Appendf(modules, "%s %s %s/%s", buildTags, runtime.Version(), runtime.GOOS, runtime.GOARCH))
	return filepath.Join(parent, fmt.Sprintf("%x", key[:8])), nil
}

// findRoot returns the root of the repository, from the working directory upwards.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, modfile)); err == nil {
			return dir, nil
		}
	}
	return "", errors.New("no directory from here upwards has " + modfile + ": run inside the repository")
}
