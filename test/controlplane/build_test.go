//go:build unix

package controlplane

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette/test/logbuffer"
)

// newTinyTarget returns a target with one small program of the given source.
func newTinyTarget(t *testing.T, source string) buildTarget {
	t.Helper()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module example.com/tiny\n\ngo 1.26\n"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(source), 0o600))
	return buildTarget{
		recipe: recipe{module: "tiny", packages: []string{"."}, binaries: []string{"tiny"}},
		dir:    dir, version: "v1", key: "k",
	}
}

const hello = "package main\n\nfunc main() { println(\"hello\") }\n"

func TestConcurrentBuildsBuildOnce(t *testing.T) {
	b, dir := newTinyTarget(t, hello), filepath.Join(t.TempDir(), "tiny")
	var log logbuffer.Buffer
	var builds sync.WaitGroup
	for range 8 {
		builds.Go(func() {
			if err := b.ensureBuilt(t.Context(), dir, &log); err != nil {
				t.Error(err)
			}
			if out, err := exec.Command(filepath.Join(dir, "tiny")).CombinedOutput(); string(out) != "hello\n" {
				t.Errorf("the program printed %q (%v)", out, err)
			}
		})
	}
	builds.Wait()
	if n := strings.Count(log.String(), "building tiny v1"); n != 1 {
		t.Errorf("got %d builds, want 1:\n%s", n, log.String())
	}
}

func TestFailedBuildLeavesNoResult(t *testing.T) {
	b, dir := newTinyTarget(t, "package main\n\nfunc main() { undefinedThing() }\n"), filepath.Join(t.TempDir(), "tiny")
	err := b.ensureBuilt(t.Context(), dir, &bytes.Buffer{})
	if err == nil || !strings.Contains(err.Error(), "undefined: undefinedThing") {
		t.Errorf("got error %v, want the compiler's error", err)
	}
	wantPartials(t, dir, 0)
	if exists(dir) {
		t.Error("a failed build left a result")
	}
}

func TestPartialBuildIsNotUsed(t *testing.T) {
	b, dir := newTinyTarget(t, hello), filepath.Join(t.TempDir(), "tiny")
	partial, err := newPartial(dir)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(partial, "tiny"), []byte("half"), 0o700))
	must(t, b.ensureBuilt(t.Context(), dir, &bytes.Buffer{}))
	if out, err := exec.Command(filepath.Join(dir, "tiny")).CombinedOutput(); string(out) != "hello\n" {
		t.Errorf("the program printed %q (%v)", out, err)
	}
	wantPartials(t, dir, 0)
}

func wantPartials(t *testing.T, dir string, want int) {
	t.Helper()
	partials, err := filepath.Glob(dir + ".partial-*")
	must(t, err)
	if len(partials) != want {
		t.Errorf("got partial directories %q, want %d", partials, want)
	}
}

func TestBuildErrorsAreActionable(t *testing.T) {
	t.Run("a module that does not exist", func(t *testing.T) {
		t.Setenv("GOPROXY", "off")
		t.Setenv("GOMODCACHE", t.TempDir())
		b := newTinyTarget(t, "package main\n\nimport _ \"example.com/other\"\n\nfunc main() {}\n")
		mod := "module example.com/tiny\n\ngo 1.26\n\nrequire example.com/other v1.0.0\n"
		must(t, os.WriteFile(filepath.Join(b.dir, "go.mod"), []byte(mod), 0o600))
		must(t, os.WriteFile(filepath.Join(b.dir, "go.sum"), []byte(
			"example.com/other v1.0.0 h1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n"+
				"example.com/other v1.0.0/go.mod h1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n"), 0o600))
		wantBuildError(t, b, "cannot be downloaded")
	})
	t.Run("no toolchain", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		wantBuildError(t, newTinyTarget(t, hello), "no Go toolchain found")
	})
}

func wantBuildError(t *testing.T, b buildTarget, want string) {
	t.Helper()
	err := b.ensureBuilt(t.Context(), filepath.Join(t.TempDir(), "tiny"), &bytes.Buffer{})
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got error %v, want %q", err, want)
	}
}

func TestWaitingBuildEndsWithItsContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	lock, err := tryLock(path, os.O_CREATE)
	must(t, err)
	defer lock.release()
	ctx, cancel := context.WithCancel(t.Context())
	_, err = waitLock(ctx, path, cancel) // ends the wait at once
	if err == nil || ctx.Err() == nil {
		t.Errorf("waiting for a held lock: got %v", err)
	}
}

func TestFunctionRunsAtEachInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ticks := 0
		stop := runEvery(30*time.Second, func() { ticks++ })
		time.Sleep(95 * time.Second)
		stop()
		if ticks != 3 {
			t.Errorf("got %d calls in 95 s, want 3", ticks)
		}
	})
}

func TestCacheKeyDependsOnAllInputs(t *testing.T) {
	b := buildTarget{recipe: recipes("kubernetes")[0], version: "v1"}
	key := b.hash([]byte("mod"), []byte("sum"))
	if key != b.hash([]byte("mod"), []byte("sum")) {
		t.Error("the key is not stable")
	}
	other := b
	other.packages = []string{"other"}
	for name, changed := range map[string]string{
		"go.mod":                     b.hash([]byte("mod2"), []byte("sum")),
		"go.sum":                     b.hash([]byte("mod"), []byte("sum2")),
		"a byte moved between parts": b.hash([]byte("mods"), []byte("um")),
		"the packages":               other.hash([]byte("mod"), []byte("sum")),
	} {
		if changed == key {
			t.Errorf("the key does not change with %s", name)
		}
	}
}

func TestRecipesMatchTheirModules(t *testing.T) {
	root, err := findRoot()
	must(t, err)
	for minor := range kubernetesModules {
		module, err := kubernetesModule(minor)
		must(t, err)
		for _, r := range recipes(module) {
			b, err := r.read(root)
			must(t, err)
			if !strings.HasPrefix(b.version, "v") || len(b.packages) != len(b.binaries) {
				t.Errorf("recipe %s: got version %q, %d packages, %d binaries", b.module, b.version, len(b.packages), len(b.binaries))
			}
			if b.stamped && !strings.HasPrefix(b.version, "v"+minor) {
				t.Errorf("Kubernetes %s: the module builds %s", minor, b.version)
			}
		}
	}
	if r := newestKubectl(); r.module != "kubernetes" || !slices.Equal(r.uses(), []string{"kubectl"}) {
		t.Errorf("with another Kubernetes, %q of module %s is used, want kubectl of the newest", r.uses(), r.module)
	}
	if _, err := kubernetesModule("1.12"); err == nil || !strings.Contains(err.Error(), "use one of 1.34, 1.35, 1.36") {
		t.Errorf("an unknown version: got %v", err)
	}
}

func TestVersionIsReadFromGoMod(t *testing.T) {
	const mod = "require example.com/one v1.0.0\n\nrequire (\n\texample.com/two v2.0.0 // indirect\n)\n\n" +
		"replace example.com/three => example.com/three v3.0.0\n"
	for module, want := range map[string]string{
		"example.com/one": "v1.0.0", "example.com/two": "v2.0.0",
		"example.com/three": "", "example.com/o": "", "exampleXcom/one": "",
	} {
		if got := requiredVersion([]byte(mod), module); got != want {
			t.Errorf("version of %s: got %q, want %q", module, got, want)
		}
	}
}

func TestFindRootFromNestedModule(t *testing.T) {
	want, err := findRoot()
	must(t, err)
	t.Chdir("kubernetes")
	got, err := findRoot()
	must(t, err)
	if got != want {
		t.Errorf("got root %s, and %s from a nested module", want, got)
	}
	t.Chdir(t.TempDir())
	if _, err := findRoot(); err == nil || !strings.Contains(err.Error(), "run inside the repository") {
		t.Errorf("outside the repository: got %v", err)
	}
}

// The tests of many packages import this package, so it must not bring Kubernetes, etcd or anything
// else into the root module.
func TestDriverImportsOnlyStandardLibrary(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".").Output()
	must(t, err)
	if got := strings.Fields(string(out)); !slices.Equal(got, []string{rootModule + "/test/cache", rootModule + "/test/ports", rootModule + "/test/controlplane"}) {
		t.Errorf("the driver depends on %q", got)
	}
}
