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

// up is what the flags of the command say.
type up struct {
	name        string
	controllers bool
	nodes       int
	workloads   bool
	deployments int
	churn       float64
}

func runUp(ctx context.Context, args []string, out, log io.Writer) error {
	var u up
	flags := newFlags("up", log)
	flags.StringVar(&u.name, "name", "plane", "tells planes apart; lower-case letters, digits and dashes")
	flags.BoolVar(&u.controllers, "controllers", true, "run kube-controller-manager, kube-scheduler and kwok too")
	flags.IntVar(&u.nodes, "nodes", 2, "how many nodes kwok plays")
	flags.BoolVar(&u.workloads, "workloads", false, "create sample objects in namespace demo")
	flags.IntVar(&u.deployments, "deployments", 5, "how many Deployments --workloads creates")
	flags.Float64Var(&u.churn, "churn", 0, "change the sample objects so many times a second (implies --workloads)")
	if err := parse(flags, args); err != nil {
		return err
	}
	return u.run(ctx, out, log)
}

func (u up) run(ctx context.Context, out, log io.Writer) (err error) {
	dir, err := controlplane.NamedDir(u.name)
	if err != nil {
		return err
	}
	plane, err := controlplane.Start(ctx, controlplane.Options{
		Controllers: u.controllers, Nodes: u.nodes, Dir: dir, Log: log,
	})
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, plane.Stop())
		fmt.Fprintf(log, "controlplane: stopped, %s removed\n", dir)
	}()
	u.explain(out, plane)
	return u.live(ctx, plane, log)
}

// explain says how to use the plane.
func (u up) explain(out io.Writer, plane *controlplane.Plane) {
	fmt.Fprintf(out, `
  export KUBECONFIG=%s
  kubectl get all --all-namespaces

The API server is %s, logs are in %s.
Without kubectl: go run ./test/controlplane/cmd/controlplane kubectl --name %s -- get nodes
Ctrl-C stops the plane and removes it.
`, plane.Kubeconfig(), plane.URL, plane.Dir, u.name)
}

// live stays until the user ends it, or until a process of the plane or the
// work on the sample objects fails.
func (u up) live(ctx context.Context, plane *controlplane.Plane, log io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	worked := make(chan struct{})
	var failure error // set before worked is closed
	go func() {
		defer close(worked)
		if failure = u.work(ctx, plane, log); failure != nil {
			cancel()
		}
	}()
	err := watchOver(ctx, plane)
	cancel()
	<-worked
	return errors.Join(err, failure)
}

// work creates and churns the workloads that were asked for.
func (u up) work(ctx context.Context, plane *controlplane.Plane, log io.Writer) error {
	if !u.workloads && u.churn <= 0 {
		return nil
	}
	workloads := controlplane.Workloads{Deployments: u.deployments}
	if err := plane.CreateWorkloads(ctx, workloads); err != nil {
		if ctx.Err() != nil { // the user was faster
			return nil
		}
		return err
	}
	fmt.Fprintln(log, "controlplane: created the sample objects in namespace demo")
	if u.churn <= 0 {
		return nil
	}
	changes, err := plane.Churn(ctx, workloads, u.churn)
	fmt.Fprintf(log, "controlplane: changed the sample objects %d times\n", changes)
	return err
}

// watchOver waits for the end of the context, or fails with a process of the
// plane.
func watchOver(ctx context.Context, plane *controlplane.Plane) error {
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
