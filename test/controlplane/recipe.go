//go:build unix

package controlplane

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

const (
	rootModule       = "github.com/vedette-io/vedette"
	kubernetesSource = "k8s.io/kubernetes"

	// versionFlag sets Kubernetes' version, which its own build scripts do otherwise. Without it
	// kubectl and the scheduler cannot parse the version.
	versionFlag = "-X k8s.io/component-base/version.gitVersion="
)

// recipe describes the programs that are built from one nested module, in one go build so that
// shared packages compile once.
type recipe struct {
	module   string   // directory below test/controlplane, and name in the cache
	dir      string   // of the module below the repository's root, if it is not there
	source   string   // module path whose version is logged and compiled in
	packages []string // packages of the programs
	binaries []string // file names of the programs, in the same order
	stamped  bool     // whether versionFlag is used
	used     []string // of binaries; nil for all
}

// uses returns the programs of the recipe that a plane runs.
func (r recipe) uses() []string {
	if r.used != nil {
		return r.used
	}
	return r.binaries
}

// variableKubernetes names the environment variable that selects the Kubernetes of the plane by its minor version, for example 1.35.
const variableKubernetes = "KUBERNETES"

// kubernetesModules are the nested modules that build Kubernetes, by its minor version.
var kubernetesModules = map[string]string{
	"":     "kubernetes",
	"1.36": "kubernetes",
	"1.35": "kubernetes-1.35",
	"1.34": "kubernetes-1.34",
}

// kubernetesModule returns the module of a minor version, and that of the newest for "".
func kubernetesModule(minor string) (string, error) {
	module, known := kubernetesModules[minor]
	if !known {
		minors := slices.Sorted(maps.Keys(kubernetesModules))[1:]
		return "", fmt.Errorf("%s=%s: there is no module for this version of Kubernetes below test/controlplane: use one of %s, or none for the newest",
			variableKubernetes, minor, strings.Join(minors, ", "))
	}
	return module, nil
}

// recipes returns what a plane consists of, with the Kubernetes of a module.
func recipes(kubernetes string) []recipe {
	return []recipe{
		{
			module: "etcd", source: "go.etcd.io/etcd/server/v3",
			packages: []string{"go.etcd.io/etcd/server/v3"},
			binaries: []string{"etcd"},
		},
		{
			module: "kwok", source: "sigs.k8s.io/kwok",
			packages: []string{"sigs.k8s.io/kwok/cmd/kwok"},
			binaries: []string{"kwok"},
		},
		kubernetesRecipe(kubernetes),
	}
}

// newestKubectl returns a recipe of the newest kubectl, which is built with the rest of its Kubernetes.
func newestKubectl() recipe {
	r := kubernetesRecipe(kubernetesModules[""])
	r.used = []string{"kubectl"}
	return r
}

func kubernetesRecipe(module string) recipe {
	return recipe{
		module: module, source: kubernetesSource, stamped: true,
		packages: []string{
			"k8s.io/kubernetes/cmd/kube-apiserver",
			"k8s.io/kubernetes/cmd/kube-controller-manager",
			"k8s.io/kubernetes/cmd/kube-scheduler",
			"k8s.io/kubernetes/cmd/kubectl",
		},
		binaries: []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"},
	}
}

// Tools are programs of a module of this repository that are built and cached like those of a plane.
type Tools struct {
	Dir      string   // of the module, below the repository's root
	Source   string   // module that the programs come from, whose version is logged
	Packages []string // packages of the programs
	Binaries []string // file names of the programs, in the same order
}

func (t Tools) recipe() recipe {
	return recipe{module: path.Base(t.Dir), dir: t.Dir, source: t.Source, stamped: t.Source == kubernetesSource,
		packages: t.Packages, binaries: t.Binaries}
}

// buildTarget is a recipe and what was read from its module.
type buildTarget struct {
	recipe
	dir     string // of the nested module
	version string
	key     string // changes with everything that the binaries depend on
}

// read reads a recipe's module below the repository's root.
func (r recipe) read(root string) (buildTarget, error) {
	t := buildTarget{recipe: r, dir: filepath.Join(root, "test", "controlplane", r.module)}
	if r.dir != "" {
		t.dir = filepath.Join(root, filepath.FromSlash(r.dir))
	}
	mod, err := os.ReadFile(filepath.Join(t.dir, "go.mod"))
	if err != nil {
		return t, fmt.Errorf("read the build recipe of %s: %w", r.module, err)
	}
	sum, err := os.ReadFile(filepath.Join(t.dir, "go.sum"))
	if err != nil {
		return t, fmt.Errorf("read the build recipe of %s: %w", r.module, err)
	}
	t.version = requiredVersion(mod, r.source)
	if t.version == "" {
		return t, fmt.Errorf("read %s: the module does not require %s", filepath.Join(t.dir, "go.mod"), r.source)
	}
	sources, err := t.sources()
	if err != nil {
		return t, fmt.Errorf("read the build recipe of %s: %w", r.module, err)
	}
	t.key = t.hash(mod, sum, sources...)
	return t, nil
}

// sources returns the Go files of the module itself. Most modules have none.
func (t buildTarget) sources() (sources [][]byte, err error) {
	files, err := filepath.Glob(filepath.Join(t.dir, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		sources = append(sources, source)
	}
	return sources, nil
}

// hash covers the modules, the build arguments, and the Go release and platform of this program,
// which are also those of go on PATH.
func (t buildTarget) hash(mod, sum []byte, sources ...[]byte) string {
	h := sha256.New()
	parts := append([][]byte{
		mod, sum,
		[]byte(strings.Join(t.arguments("."), " ")),
		[]byte(runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH),
	}, sources...)
	for _, part := range parts {
		fmt.Fprintf(h, "%d\n", len(part)) // so that bytes cannot move between parts
		h.Write(part)
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:8])
}

// arguments returns go's arguments for a build into a directory. go names several programs after
// their packages, and a single one as specified.
func (t buildTarget) arguments(dir string) []string {
	flags := "-s -w"
	if t.stamped {
		flags += " " + versionFlag + t.version
	}
	out := dir + string(filepath.Separator)
	if len(t.binaries) == 1 {
		out += t.binaries[0]
	}
	return append([]string{"build", "-trimpath", "-buildvcs=false", "-ldflags", flags, "-o", out}, t.packages...)
}

// requiredVersion returns a module's version in a go.mod, or "".
func requiredVersion(mod []byte, module string) string {
	line := regexp.MustCompile(`(?m)^(?:require)?\s+` + regexp.QuoteMeta(module) + ` (v\S+)`)
	if found := line.FindSubmatch(mod); found != nil {
		return string(found[1])
	}
	return ""
}

// findRoot returns the directory of the root module, from the working directory upwards. go test
// sets that to the directory of the package. The nested modules cannot be embedded, because a
// module does not contain the files of another module.
func findRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the repository: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && declaresRoot(mod) {
			return dir, nil
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("find the repository: %w", err)
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("find the repository: no directory from %s upwards has the go.mod of %s: run inside the repository", start,
				rootModule)
		}
	}
}

func declaresRoot(mod []byte) bool {
	for line := range strings.Lines(string(mod)) {
		if strings.TrimSpace(line) == "module "+rootModule {
			return true
		}
	}
	return false
}
