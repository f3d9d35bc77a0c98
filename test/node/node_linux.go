package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/vedette-io/vedette/test/controlplane"
	"github.com/vedette-io/vedette/test/process"
)

// startTimeout limits a start, which takes some ten seconds on two cores that have nothing else to do.
const startTimeout = 5 * time.Minute

// pollInterval is how often a condition is checked.
const pollInterval = 50 * time.Millisecond

// A Node is a control plane with one real node. Its methods may be called from several goroutines.
type Node struct {
	Plane *controlplane.Plane
	Dir   string // of all files, for example the logs of the daemons

	binaries controlplane.Binaries
	daemons  []*process.Process
}

// Start starts a control plane and a node, and waits until Pods can run. It needs the namespaces of [Main], in which only one can
// run.
func Start(ctx context.Context) (*Node, error) {
	if os.Getenv(stageVariable) != stageTests {
		return nil, errors.New("start a node: TestMain must call node.Main")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not ready after %v", startTimeout))
	defer cancel()
	n := &Node{Dir: Dir()}
	if err := n.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start a node: %w", err), n.Stop())
	}
	return n, nil
}

func (n *Node) start(ctx context.Context) (err error) {
	if n.binaries, err = build(ctx, os.Stderr); err != nil {
		return err
	}
	if err := createCgroups(filepath.Base(n.Dir)); err != nil {
		return err
	}
	if err := n.startContainerd(ctx); err != nil {
		return err
	}
	n.Plane, err = controlplane.Start(ctx, controlplane.Options{Controllers: true, Kubelet: Address, Dir: n.path("plane")})
	if err != nil {
		return err
	}
	if err := n.writeConfigurations(); err != nil {
		return err
	}
	if err := n.startDaemon(kubelet, arguments(n, kubelet)...); err != nil {
		return err
	}
	if err := n.Await(ctx, "the node exists", func(ctx context.Context) error {
		return n.Plane.Get(ctx, "/api/v1/nodes/"+Name, nil)
	}); err != nil {
		return err
	}
	for _, name := range []string{kubeProxy, coreDNS, kubeRouter} { // kube-router ends if the node does not exist
		if err := n.startDaemon(name, arguments(n, name)...); err != nil {
			return err
		}
	}
	return n.Await(ctx, "the node is Ready", n.ready)
}

// startContainerd starts containerd, and gives it the image of Pods.
func (n *Node) startContainerd(ctx context.Context) error {
	if err := os.WriteFile(n.path("containerd.toml"), []byte(containerdConfig(n.Dir)), 0o600); err != nil {
		return fmt.Errorf("write the configuration of containerd: %w", err)
	}
	if err := os.Mkdir(n.path("cni"), 0o755); err != nil {
		return fmt.Errorf("write the network of Pods: %w", err)
	}
	if err := os.WriteFile(n.path("cni/10-node.conflist"), []byte(cniConfig(n.Dir)), 0o600); err != nil {
		return fmt.Errorf("write the network of Pods: %w", err)
	}
	if err := n.startDaemon(containerd, "--config", n.path("containerd.toml")); err != nil {
		return err
	}
	if err := buildPod(ctx, n.path("pod")); err != nil {
		return err
	}
	if err := writeImage(n.path("pod.tar"), n.path("pod"), podImage); err != nil {
		return err
	}
	if err := n.Await(ctx, "containerd answers", func(ctx context.Context) error {
		_, err := n.ctr(ctx, "version")
		return err
	}); err != nil {
		return err
	}
	return n.Load(ctx, n.path("pod.tar"))
}

// Load gives the node the images of an OCI layout in one file, such as tools/release writes.
func (n *Node) Load(ctx context.Context, archive string) error {
	_, err := n.ctr(ctx, "images", "import", archive)
	return err
}

// PID returns the process of a container, by its id with or without the name of the runtime before it.
func (n *Node) PID(ctx context.Context, container string) (int, error) {
	_, id, found := strings.Cut(container, "://")
	if !found {
		id = container
	}
	listed, err := n.ctr(ctx, "tasks", "list")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(listed) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == id && fields[2] == "RUNNING" {
			pid, err := strconv.Atoi(fields[1])
			if err != nil {
				return 0, fmt.Errorf("find the process of container %s: %w", id, err)
			}
			return pid, nil
		}
	}
	return 0, fmt.Errorf("container %s does not run:\n%s", id, listed)
}

// ctr runs containerd's command-line tool in the namespace of Kubernetes.
func (n *Node) ctr(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, n.binaries[ctr], append([]string{"--namespace", "k8s.io"}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("ctr %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// startDaemon starts a program. containerd finds its shim next to itself, and its runc on the PATH.
func (n *Node) startDaemon(name string, args ...string) error {
	cmd := exec.Command(n.binaries[name], args...)
	cmd.Dir = n.Dir
	cmd.Env = []string{"HOME=" + n.Dir, "TMPDIR=" + n.Dir, "PATH=" + filepath.Dir(n.binaries[name]) + ":" + os.Getenv("PATH")}
	daemon, err := process.Start(name, cmd)
	if err != nil {
		return err
	}
	n.daemons = append(n.daemons, daemon)
	return nil
}

// ready fails unless the node is Ready, and has lost the taints of nodes that are not.
func (n *Node) ready(ctx context.Context) error {
	var object struct {
		Spec   struct{ Taints []struct{ Key string } }
		Status struct {
			Conditions []struct{ Type, Status, Message string }
		}
	}
	if err := n.Plane.Get(ctx, "/api/v1/nodes/"+Name, &object); err != nil {
		return err
	}
	for _, c := range object.Status.Conditions {
		if c.Type == "Ready" && c.Status == "True" && len(object.Spec.Taints) == 0 {
			return nil
		}
	}
	return fmt.Errorf("the node has the conditions %v and the taints %v", object.Status.Conditions, object.Spec.Taints)
}

// Await polls until condition returns nil. It fails if ctx ends, or at once if a daemon has ended, with the end of its log.
func (n *Node) Await(ctx context.Context, what string, condition func(context.Context) error) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		err := condition(ctx)
		if err == nil {
			return nil
		}
		if endErr := n.Err(); endErr != nil {
			return fmt.Errorf("wait until %s: %w", what, endErr)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("wait until %s: %w; at last: %w", what, context.Cause(ctx), err)
		}
	}
}

// Err returns an error if a program of the node or of its control plane has ended, with the end of its log.
func (n *Node) Err() error {
	for _, d := range n.daemons {
		if err := d.Exited(); err != nil {
			return fmt.Errorf("%w, the end of its log:\n%s", err, d.Tail())
		}
	}
	if n.Plane != nil {
		return n.Plane.Err()
	}
	return nil
}

// Stop stops the daemons and the control plane. Containers end with the namespaces.
func (n *Node) Stop() error {
	for _, d := range n.daemons {
		d.Kill()
	}
	n.daemons = nil
	if n.Plane == nil {
		return nil
	}
	return n.Plane.Stop()
}

func (n *Node) path(name string) string { return filepath.Join(n.Dir, name) }
