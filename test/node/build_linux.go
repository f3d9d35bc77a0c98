package node

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/vedette-io/vedette/test/controlplane"
)

const (
	containerd = "containerd"
	kubelet    = "kubelet"
	kubeProxy  = "kube-proxy"
	kubeRouter = "kube-router"
	coreDNS    = "coredns"
	ctr        = "ctr"
)

// tools are the programs of a node. Those of Debian are too old for this kubelet, or do not exist.
func tools() []controlplane.Tools {
	const containerdModule, kubeRouterModule = "github.com/containerd/containerd/v2", "github.com/cloudnativelabs/kube-router/v2"
	return []controlplane.Tools{
		{
			Dir: "test/node/containerd", Source: containerdModule,
			Packages: []string{containerdModule + "/cmd/containerd", containerdModule + "/cmd/containerd-shim-runc-v2", containerdModule + "/cmd/ctr"},
			Binaries: []string{containerd, "containerd-shim-runc-v2", ctr},
		},
		{
			Dir: "test/node/kubernetes", Source: "k8s.io/kubernetes",
			Packages: []string{"k8s.io/kubernetes/cmd/kubelet", "k8s.io/kubernetes/cmd/kube-proxy"},
			Binaries: []string{kubelet, kubeProxy},
		},
		{
			Dir: "test/node/kuberouter", Source: kubeRouterModule,
			Packages: []string{kubeRouterModule + "/cmd/kube-router"}, Binaries: []string{kubeRouter},
		},
		{
			Dir: "test/node/coredns", Source: "github.com/coredns/coredns",
			Packages: []string{"."}, Binaries: []string{coreDNS},
		},
	}
}

// build returns the programs of a node from the cache, and builds those that are missing, with those of a control plane. It takes
// some ten minutes on two cores, once.
func build(ctx context.Context, log io.Writer) (controlplane.Binaries, error) {
	if _, err := controlplane.Build(ctx, log); err != nil {
		return nil, err
	}
	return controlplane.BuildTools(ctx, log, tools()...)
}

// buildPod builds the program of PodImage.
func buildPod(ctx context.Context, target string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", target, "github.com/vedette-io/vedette/test/node/pod")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", filepath.Base(target), err, out)
	}
	return nil
}
