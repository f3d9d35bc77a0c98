//go:build unix

package controlplane

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Kubectl runs the newest kubectl as the administrator and returns its standard
// output. Standard error is in the error. Tests use it as the reference for what a manifest or a
// command does.
func (p *Plane) Kubectl(ctx context.Context, args ...string) ([]byte, error) {
	return p.KubectlAs(ctx, p.Kubeconfig(), args...)
}

// KubectlAs is like Kubectl with another kubeconfig, for example one of UserKubeconfig.
func (p *Plane) KubectlAs(ctx context.Context, kubeconfig string, args ...string) ([]byte, error) {
	var stdout, stderr bytes.Buffer
	cmd := p.kubectl(ctx, kubeconfig, args)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.Bytes(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return stdout.Bytes(), nil
}

// KubectlCombinedOutput is like Kubectl, but returns standard output and standard error together,
// as in a terminal.
func (p *Plane) KubectlCombinedOutput(ctx context.Context, args ...string) ([]byte, error) {
	output, err := p.kubectl(ctx, p.Kubeconfig(), args).CombinedOutput()
	if err != nil {
		return output, fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, output)
	}
	return output, nil
}

// KubectlCommand returns a command that runs kubectl as the administrator, for example to forward ports.
func (p *Plane) KubectlCommand(ctx context.Context, args ...string) *exec.Cmd {
	return p.kubectl(ctx, p.Kubeconfig(), args)
}

func (p *Plane) kubectl(ctx context.Context, kubeconfig string, args []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, p.binaries["kubectl"], args...)
	cmd.Env = []string{"HOME=" + p.Dir, "PATH=" + os.Getenv("PATH"), "KUBECONFIG=" + kubeconfig}
	return cmd
}

// KubectlPath returns the kubectl of the plane's release.
func (p *Plane) KubectlPath() string { return p.binaries["kubectl"] }
