//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/vedette-io/vedette/test/controlplane"
)

// upOptions holds the values of the command's flags.
type upOptions struct {
	name        string
	controllers bool
	nodes       int
	workloads   bool
	deployments int
	churn       float64
}

func runUp(ctx context.Context, args []string, out, log io.Writer) error {
	var o upOptions
	flags := newFlags("up", log)
	flags.StringVar(&o.name, "name", "plane", "name of the plane: lower-case letters, digits and dashes")
	flags.BoolVar(&o.controllers, "controllers", true, "also run kube-controller-manager, kube-scheduler and kwok")
	flags.IntVar(&o.nodes, "nodes", 2, "number of nodes that kwok simulates")
	flags.BoolVar(&o.workloads, "workloads", false, "create sample objects in namespace demo")
	flags.IntVar(&o.deployments, "deployments", 5, "number of Deployments that --workloads creates")
	flags.Float64Var(&o.churn, "churn", 0, "changes of sample objects per second (implies --workloads)")
	if err := parse(flags, args); err != nil {
		return err
	}
	return o.run(ctx, out, log)
}

func (o upOptions) run(ctx context.Context, out, log io.Writer) (err error) {
	dir, err := controlplane.NamedDir(o.name)
	if err != nil {
		return err
	}
	plane, err := controlplane.Start(ctx, controlplane.Options{
		Controllers: o.controllers, Nodes: o.nodes, Dir: dir, Log: log,
	})
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, plane.Stop())
		fmt.Fprintf(log, "controlplane: stopped, %s removed\n", dir)
	}()
	o.printUsage(out, plane)
	return o.runUntilDone(ctx, plane, log)
}

// printUsage prints how to use the plane.
func (o upOptions) printUsage(out io.Writer, plane *controlplane.Plane) {
	fmt.Fprintf(out, `
  export KUBECONFIG=%s
  kubectl get all --all-namespaces

The API server is %s, logs are in %s.
Without kubectl: go run ./test/controlplane/cmd/controlplane kubectl --name %s -- get nodes
Ctrl-C stops the plane and removes it.
`, plane.Kubeconfig(), plane.URL, plane.Dir, o.name)
}

// runUntilDone runs until ctx ends, or until a process of the plane or the work on the sample
// objects fails.
func (o upOptions) runUntilDone(ctx context.Context, plane *controlplane.Plane, log io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	workloadsDone := make(chan struct{})
	var workloadErr error // set before worked is closed
	go func() {
		defer close(workloadsDone)
		workloadErr = o.runWorkloads(ctx, plane, log)
		if workloadErr != nil {
			cancel()
		}
	}()
	err := waitForExit(ctx, plane)
	cancel()
	<-workloadsDone
	return errors.Join(err, workloadErr)
}

// runWorkloads creates and changes the sample objects.
func (o upOptions) runWorkloads(ctx context.Context, plane *controlplane.Plane, log io.Writer) error {
	if !o.workloads && o.churn <= 0 {
		return nil
	}
	workloads := controlplane.Workloads{Deployments: o.deployments}
	if err := plane.CreateWorkloads(ctx, workloads); err != nil {
		if ctx.Err() != nil { // interrupted by the user
			return nil
		}
		return err
	}
	fmt.Fprintln(log, "controlplane: created the sample objects in namespace demo")
	if o.churn <= 0 {
		return nil
	}
	changes, err := plane.Churn(ctx, workloads, o.churn)
	fmt.Fprintf(log, "controlplane: changed the sample objects %d times\n", changes)
	return err
}

// waitForExit waits until ctx ends, or fails if a process of the plane exits.
func waitForExit(ctx context.Context, plane *controlplane.Plane) error {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if err := plane.Err(); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}
