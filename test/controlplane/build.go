//go:build unix

package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/vedette-io/vedette/test/cache"
)

// progressInterval is how often a running build writes a line to the log.
const progressInterval = 30 * time.Second

// Binaries maps the name of a program, for example "kube-apiserver", to its path.
type Binaries map[string]string

// Build returns the programs of a plane from the cache, and builds those that are missing. A build
// takes some ten minutes on two cores, once per version and Go release. Each step writes a line to
// log, which may be nil.
//
// The cache is vedette/controlplane in os.UserCacheDir, or controlplane in the directory
// VEDETTE_CACHE. The variable KUBERNETES selects another Kubernetes than the newest, by its minor
// version, except for kubectl, because our commands do what the newest one does. Processes that build at the same time wait
// for each other. A build that fails or is killed leaves nothing that is mistaken for a result. Build uses go from PATH.
func Build(ctx context.Context, log io.Writer) (Binaries, error) {
	kubernetes, err := kubernetesModule(os.Getenv(variableKubernetes))
	if err != nil {
		return nil, err
	}
	wanted := recipes(kubernetes)
	if kubernetes != kubernetesModules[""] {
		wanted = append(wanted, newestKubectl())
	}
	return build(ctx, log, wanted)
}

// BuildTools is Build for other programs.
func BuildTools(ctx context.Context, log io.Writer, tools ...Tools) (Binaries, error) {
	var list []recipe
	for _, t := range tools {
		list = append(list, t.recipe())
	}
	return build(ctx, log, list)
}

func build(ctx context.Context, log io.Writer, list []recipe) (Binaries, error) {
	if log == nil {
		log = io.Discard
	}
	root, err := findRoot()
	if err != nil {
		return nil, err
	}
	base, err := cache.Dir("controlplane")
	if err != nil {
		return nil, err
	}
	binaries := Binaries{}
	for _, r := range list {
		b, err := r.read(root)
		if err != nil {
			return nil, err
		}
		dir := filepath.Join(base, b.module+"-"+b.version+"-"+b.key)
		if err := b.ensureBuilt(ctx, dir, log); err != nil {
			return nil, fmt.Errorf("build %s %s: %w", b.module, b.version, err)
		}
		for _, name := range r.uses() {
			binaries[name] = filepath.Join(dir, name)
		}
	}
	return binaries, nil
}

// ensureBuilt builds the target's binaries into dir, unless dir exists. A directory of that name is
// always complete, because it is renamed to it at the end.
func (t buildTarget) ensureBuilt(ctx context.Context, dir string, log io.Writer) error {
	if exists(dir) {
		return nil
	}
	lock, err := waitLock(ctx, dir+".lock", func() {
		fmt.Fprintf(log, "controlplane: waiting for another process that builds %s %s\n", t.module, t.version)
	})
	if err != nil {
		return err
	}
	defer lock.release()
	if exists(dir) {
		return nil
	}
	partial, err := newPartial(dir)
	if err != nil {
		return err
	}
	defer os.RemoveAll(partial)
	if err := t.buildAndLog(ctx, partial, log); err != nil {
		return err
	}
	return os.Rename(partial, dir)
}

// newPartial creates the directory in which dir is built, and removes those of builds that were
// killed. Its name is unique, because the go command of a killed build may still be running.
func newPartial(dir string) (string, error) {
	leftovers, err := filepath.Glob(dir + ".partial-*")
	if err != nil {
		return "", err
	}
	for _, old := range leftovers {
		if err := os.RemoveAll(old); err != nil {
			return "", err
		}
	}
	return os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+".partial-")
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// buildAndLog compiles into an empty directory and writes progress to the log.
func (t buildTarget) buildAndLog(ctx context.Context, dir string, log io.Writer) error {
	names := strings.Join(t.binaries, ", ")
	fmt.Fprintf(log, "controlplane: building %s %s (once; cached in %s)\n", names, t.version, filepath.Dir(dir))
	began := time.Now()
	elapsed := func() time.Duration { return time.Since(began).Round(time.Second) }
	stop := runEvery(progressInterval, func() {
		fmt.Fprintf(log, "controlplane: still building %s after %v\n", names, elapsed())
	})
	err := t.compile(ctx, dir)
	stop()
	if err != nil {
		return err
	}
	for _, name := range t.binaries {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(log, "controlplane: built %s %s, %d MB, after %v\n", name, t.version, info.Size()>>20, elapsed())
	}
	return nil
}

// runEvery calls f at each interval until stop is called. Stop returns when no call of f is
// running.
func runEvery(interval time.Duration, f func()) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				f()
			case <-done:
				return
			}
		}
	}()
	return func() { close(done); <-ended }
}

// compile runs go build. It overrides the user's settings that would change the result: GOFLAGS,
// workspaces, platform, cgo.
func (t buildTarget) compile(ctx context.Context, dir string) error {
	goTool, err := exec.LookPath("go")
	if err != nil {
		return fmt.Errorf("no Go toolchain found: %w: install Go and add its bin directory to PATH", err)
	}
	var output bytes.Buffer
	cmd := exec.CommandContext(ctx, goTool, t.arguments(dir)...)
	cmd.Dir = t.dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off", "CGO_ENABLED=0",
		"GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH, "GOEXPERIMENT=")
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // so that go removes its work directory
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		return explainBuildError(errors.Join(context.Cause(ctx), err), output.String())
	}
	return nil
}

// explainBuildError adds go's output, and what to do if a download failed.
func explainBuildError(err error, output string) error {
	tail := lastLines(output, 20)
	for _, pattern := range []string{"dial tcp", "lookup ", "proxyconnect", "403 ", "404 ", "410 ", "unrecognized import path",
		"disabled by GOPROXY"} {
		if strings.Contains(output, pattern) {
			return fmt.Errorf("a Go module cannot be downloaded (%w): check the network and GOPROXY, then try again:\n%s", err, tail)
		}
	}
	return fmt.Errorf("go build: %w:\n%s", err, tail)
}

// lastLines returns at most the last n lines of text.
func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
