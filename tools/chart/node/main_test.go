package node

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/vedette-io/vedette/test/controlplane"
	"github.com/vedette-io/vedette/test/node"
	"github.com/vedette-io/vedette/test/upgrade"
)

const (
	root  = "../../.."
	chart = root + "/deploy/helm/vedette"

	// newVersion is of this tree, nextVersion of the same with another name, and oldVersion of the version before (test/upgrade/versions).
	newVersion  = "v0.2.0-test"
	nextVersion = "v0.3.0-test"
	oldVersion  = "v0.1.0-test"

	// images is where the node finds them. A registry at this machine needs no TLS.
	registryAddress = "127.0.0.1:5000"
	images          = registryAddress + "/vedette"
)

func TestMain(m *testing.M) {
	code := node.Main(m, prepare)
	if shared != nil {
		if err := errors.Join(shared.Err(), shared.Stop()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// prepare builds what tests run, while there is a network for modules.
func prepare(ctx context.Context, dir string) error {
	tree, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	release := filepath.Join(dir, "release")
	old := filepath.Join(dir, "source")
	steps := [][]string{
		{"go", "build", "-trimpath", "-o", filepath.Join(dir, "helm"), "helm.sh/helm/v4/cmd/helm"},
		{"env", "CGO_ENABLED=0", "go", "build", "-trimpath", "-o", filepath.Join(dir, "plugin"), "./plugin"},
		{"go", "build", "-C", filepath.Join(root, "tools/release"), "-trimpath", "-o", release, "."},
		{release, "images", "--root", tree, "--out", filepath.Join(dir, newVersion), "--version", newVersion, "--platforms", platform},
		{release, "images", "--root", tree, "--out", filepath.Join(dir, nextVersion), "--version", nextVersion, "--platforms", platform},
		{"git", "clone", "--quiet", "--shared", "--no-checkout", tree, old},
	}
	for _, step := range steps {
		if err := run(ctx, step...); err != nil {
			return err
		}
	}
	previous, err := upgrade.Previous()
	if err != nil {
		return err
	}
	if err := run(ctx, "git", "-C", old, "checkout", "--quiet", previous.Commit); err != nil {
		return fmt.Errorf("%w: get the whole history with \"git fetch --unshallow\"", err)
	}
	return run(ctx, release, "images", "--root", old, "--out", filepath.Join(dir, oldVersion), "--version", oldVersion, "--platforms", platform)
}

const platform = "linux/" + runtime.GOARCH

func run(ctx context.Context, args ...string) error {
	if out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// shared is the node of all tests, and startOnce starts it.
var (
	shared    *node.Node
	startOnce = sync.OnceValue(start)
)

// timeout limits what a test waits for. It is long, because the machine may have other work.
const timeout = 5 * time.Minute

// start starts a registry with the images of both versions, and a node.
func start() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	listener, err := net.Listen("tcp", registryAddress)
	if err != nil {
		return err
	}
	handler := registry.New(registry.WithBlobHandler(registry.NewInMemoryBlobHandler()), registry.Logger(log.New(io.Discard, "", 0)))
	go func() { _ = http.Serve(listener, handler) }() // until the program ends
	for _, version := range []string{oldVersion, newVersion, nextVersion} {
		err := run(ctx, filepath.Join(node.Dir(), "release"), "push", "--from", filepath.Join(node.Dir(), version), "--insecure", images)
		if err != nil {
			return err
		}
	}
	shared, err = node.Start(ctx)
	return err
}

// A cluster is a namespace of the node, with what a user does there.
type cluster struct {
	*node.Node
	t         *testing.T
	ctx       context.Context
	namespace string
}

// newCluster creates a namespace that accepts only Pods without special rights.
func newCluster(t *testing.T, namespace string) *cluster {
	t.Helper()
	node.Need(t)
	if err := startOnce(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*timeout)
	t.Cleanup(cancel)
	c := &cluster{Node: shared, t: t, ctx: ctx, namespace: namespace}
	c.create("/api/v1/namespaces", object{"metadata": object{"name": namespace, "labels": object{
		"pod-security.kubernetes.io/enforce": "restricted"}}})
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(c.state())
		}
	})
	return c
}

// in returns the cluster for a subtest.
func (c *cluster) in(t *testing.T) *cluster {
	same := *c
	same.t = t
	return &same
}

type object = controlplane.Object

// state returns what one looks at first if something does not work.
func (c *cluster) state() string {
	ctx := context.WithoutCancel(c.ctx)
	var b strings.Builder
	for _, args := range [][]string{{"get", "pods,pvc,svc", "-o", "wide"}, {"get", "events", "--sort-by=.lastTimestamp"},
		{"logs", "-l", "app.kubernetes.io/name=vedette", "--all-containers", "--prefix", "--tail=30"}} {
		out, _ := c.Plane.KubectlCombinedOutput(ctx, append([]string{"-n", c.namespace}, args...)...)
		b.Write(out)
	}
	return b.String()
}

func (c *cluster) create(path string, o object) {
	c.t.Helper()
	if err := c.Plane.Create(c.ctx, path, o); err != nil {
		c.t.Fatal(err)
	}
}

// kubectl runs kubectl in the namespace, and returns what it prints.
func (c *cluster) kubectl(args ...string) string {
	c.t.Helper()
	out, err := c.Plane.Kubectl(c.ctx, append([]string{"-n", c.namespace}, args...)...)
	if err != nil {
		c.t.Fatal(err)
	}
	return string(out)
}

// await waits until condition returns nil.
func (c *cluster) await(what string, condition func() error) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.ctx, timeout)
	defer cancel()
	if err := c.Await(ctx, what, func(context.Context) error { return condition() }); err != nil {
		c.t.Fatal(err)
	}
}

// helm runs Helm's command, as in docs/installation.md.
func (c *cluster) helm(args ...string) string {
	c.t.Helper()
	out, err := c.tryHelm(args...)
	if err != nil {
		c.t.Fatal(err)
	}
	return out
}

func (c *cluster) tryHelm(args ...string) (string, error) {
	cmd := exec.CommandContext(c.ctx, filepath.Join(node.Dir(), "helm"), append(args, "--namespace", c.namespace)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Plane.Kubeconfig(), "HELM_CACHE_HOME="+node.Dir(), "HELM_CONFIG_HOME="+node.Dir(),
		"HELM_DATA_HOME="+node.Dir())
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		return string(out), fmt.Errorf("helm %s: %w: %s%s", strings.Join(args, " "), err, out, errOut.String())
	}
	return string(out), nil
}

// codeBlock is a block of commands, statements or values on a page.
var codeBlock = regexp.MustCompile("(?ms)^```(?:sh|sql|yaml)\n(.*?)^```$")

// block returns the block of a page that begins with a text.
func block(t *testing.T, page, begin string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", page))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range codeBlock.FindAllStringSubmatch(string(text), -1) {
		if strings.HasPrefix(m[1], begin) {
			return m[1]
		}
	}
	t.Fatalf("%s has no block that begins with %q", page, begin)
	return ""
}

// bash runs commands of a page in a directory, as a reader does who uses this namespace, and returns what they print.
func (c *cluster) bash(dir, commands string) string {
	c.t.Helper()
	out, err := c.tryBash(dir, commands)
	if err != nil {
		c.t.Fatal(err)
	}
	return out
}

func (c *cluster) tryBash(dir, commands string) (string, error) {
	ctx, cancel := context.WithTimeout(c.ctx, timeout)
	defer cancel()
	commands = strings.NewReplacer("-n spinnaker", "-n "+c.namespace, "--namespace spinnaker", "--namespace "+c.namespace).Replace(commands)
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", commands)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Plane.Kubeconfig(), "HOME="+node.Dir(),
		"PATH="+strings.Join([]string{filepath.Dir(c.Plane.KubectlPath()), node.Dir(), os.Getenv("PATH")}, ":"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", commands, err, out)
	}
	return string(out), err
}

// install installs the chart with settings (--set), and waits until its Pods are ready by their own probes.
func (c *cluster) install(release string, settings ...string) {
	c.t.Helper()
	c.helm(append([]string{"install", release, chart, "--wait", "--timeout", timeout.String()}, values(settings)...)...)
}

// values returns flags for settings, after those that each installation has here.
func values(settings []string) (flags []string) {
	for _, s := range append([]string{"image.registry=" + images, "image.tag=" + newVersion}, settings...) {
		flags = append(flags, "--set", s)
	}
	return flags
}

// volume makes a local volume for a claim of the namespace, as an administrator does who has no storage class.
func (c *cluster) volume(claim, dir string) {
	c.t.Helper()
	c.create("/api/v1/persistentvolumes", object{"metadata": object{"name": c.namespace + "-" + claim}, "spec": object{
		"capacity": object{"storage": "10Gi"}, "accessModes": []string{"ReadWriteOnce"}, "persistentVolumeReclaimPolicy": "Retain",
		"local": object{"path": dir}, "claimRef": object{"namespace": c.namespace, "name": claim},
		"nodeAffinity": object{"required": object{"nodeSelectorTerms": []object{{"matchExpressions": []object{
			{"key": "kubernetes.io/hostname", "operator": "In", "values": []string{node.Name}}}}}}}}})
}

// disk returns a new directory on the node.
func (c *cluster) disk(name string) string {
	c.t.Helper()
	dir := filepath.Join(node.Dir(), "disks", c.namespace, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		c.t.Fatal(err)
	}
	return dir
}

const serverClaim = "data-spin-clouddriver-vedette-0"

// pod starts a Pod of the program test/node/pod, and waits until it runs.
func (c *cluster) pod(name string, labels object, args ...string) {
	c.t.Helper()
	c.create("/api/v1/namespaces/"+c.namespace+"/pods", object{"metadata": object{"name": name, "labels": labels}, "spec": podSpec(args...)})
	c.kubectl("wait", "--for=condition=Ready", "pod/"+name, "--timeout="+timeout.String())
}

// podSpec is a Pod without special rights.
func podSpec(args ...string) object {
	return object{"terminationGracePeriodSeconds": 0, "automountServiceAccountToken": false,
		"securityContext": object{"runAsNonRoot": true, "seccompProfile": object{"type": "RuntimeDefault"}},
		"containers": []object{{"name": "pod", "image": node.PodImage, "args": args, "imagePullPolicy": "Never",
			"securityContext": object{"allowPrivilegeEscalation": false, "capabilities": object{"drop": []string{"ALL"}}}}}}
}

// inside runs the program of a Pod with arguments, and returns what it prints, also if it fails.
func (c *cluster) inside(pod string, args ...string) (string, error) {
	out, err := c.Plane.Kubectl(c.ctx, append([]string{"-n", c.namespace, "exec", pod, "--", "/pod"}, args...)...)
	return strings.TrimSpace(string(out)), err
}

// get decodes an object of the namespace, by the path below it.
func (c *cluster) get(path string, into any) {
	c.t.Helper()
	if err := c.Plane.Get(c.ctx, path, into); err != nil {
		c.t.Fatal(err)
	}
}

// A podObject is what tests look at of a Pod.
type podObject struct {
	Metadata struct {
		Name, UID, DeletionTimestamp string
		DeletionGracePeriodSeconds   int
		Labels                       map[string]string
	}
	Status struct {
		Phase, PodIP      string
		ContainerStatuses []struct {
			Name, ContainerID string
			Ready             bool
			RestartCount      int
			State             struct {
				Waiting    struct{ Reason, Message string }
				Terminated *struct{ ExitCode int }
			}
			LastState struct {
				Terminated struct {
					Reason   string
					ExitCode int
				}
			}
		}
	}
}

// pods returns the Pods with labels.
func (c *cluster) pods(selector string) []podObject {
	c.t.Helper()
	var list struct{ Items []podObject }
	c.get("/api/v1/namespaces/"+c.namespace+"/pods?labelSelector="+selector, &list)
	return list.Items
}

const (
	serverPods = "app.kubernetes.io/component%3Dserver"
	agentPods  = "app.kubernetes.io/component%3Dagent"
)

// process returns the process of the only container of a Pod.
func (c *cluster) process(p podObject) int {
	c.t.Helper()
	if len(p.Status.ContainerStatuses) != 1 {
		c.t.Fatalf("Pod %s has the containers %v, want one", p.Metadata.Name, p.Status.ContainerStatuses)
	}
	pid, err := c.PID(c.ctx, p.Status.ContainerStatuses[0].ContainerID)
	if err != nil {
		c.t.Fatal(err)
	}
	return pid
}

func encode(t *testing.T, value any) string {
	t.Helper()
	encoded, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}
