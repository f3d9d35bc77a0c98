//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/vedette-io/vedette/test/controlplane"
)

// runKubectl replaces this process by kubectl, so that terminal, signals and exit status are
// kubectl's.
func runKubectl(ctx context.Context, args []string, log io.Writer) error {
	flags := newFlags("kubectl", log)
	name := flags.String("name", "plane", "name of the plane, as given to up")
	if err := flags.Parse(args); err != nil {
		return err
	}
	dir, err := controlplane.NamedDir(*name)
	if err != nil {
		return err
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if _, err := os.Stat(kubeconfig); errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("no plane named %q is running: start one with controlplane up --name %s", *name, *name)
	}
	binaries, err := controlplane.Build(ctx, log)
	if err != nil {
		return err
	}
	argv := append([]string{"kubectl"}, flags.Args()...)
	return syscall.Exec(binaries["kubectl"], argv, append(os.Environ(), "KUBECONFIG="+kubeconfig))
}
