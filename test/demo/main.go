// Command demo runs Vedette on one machine: two real Kubernetes control planes with
// workloads that keep changing, a server with SQLite, and two agents, one with the
// environment of a pod and one with a kubeconfig. With --check it makes a change in each
// cluster, waits until the server returns it, and exits.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/vedette-io/vedette/test/controlplane"
)

func main() {
	check := flag.Bool("check", false, "make a change in each cluster, check that the server returns it, and exit")
	starter := flag.Int("starter", 0, "process id of the program with which the demo ends; 0 for the parent process only")
	flag.Parse()
	// Without SIGPIPE, `make demo | head` would kill the demo before it has stopped its programs in order.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	endWithTerminal(cancel, int(os.Stdin.Fd()))
	err := endWith(cancel, os.Getppid(), *starter)
	if err == nil {
		err = run(ctx, *check)
	}
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

var started = time.Now()

func logf(format string, args ...any) {
	fmt.Printf("%7.1fs  %s\n", time.Since(started).Seconds(), fmt.Sprintf(format, args...))
}

// logWriter logs the lines that are written to it.
type logWriter struct{}

func (logWriter) Write(p []byte) (int, error) {
	logf("%s", string(p[:max(0, len(p)-1)]))
	return len(p), nil
}

func run(ctx context.Context, check bool) error {
	logf("building the control plane (about ten minutes the first time, then cached)")
	if _, err := controlplane.Build(ctx, logWriter{}); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "vedette-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	clusters, err := startClusters(ctx, "east", "west")
	defer stopClusters(clusters)
	if err != nil {
		return err
	}
	d := &demo{dir: dir, clusters: clusters}
	defer d.stop()
	if err := d.start(ctx); err != nil {
		return err
	}
	if err := d.awaitSync(ctx); err != nil {
		return err
	}
	if check {
		return d.check(ctx)
	}
	d.printInstructions()
	return d.serve(ctx)
}

// cluster is one control plane with its sample workloads.
type cluster struct {
	name  string
	plane *controlplane.Plane
}

// startClusters starts control planes concurrently. If it fails, it returns those that have
// started, which the caller must stop.
func startClusters(ctx context.Context, names ...string) ([]*cluster, error) {
	clusters := make([]*cluster, len(names))
	group, ctx := errgroup.WithContext(ctx)
	for i, name := range names {
		group.Go(func() error {
			logf("starting control plane %s: etcd, kube-apiserver, controllers, nodes", name)
			plane, err := controlplane.Start(ctx, controlplane.Options{Controllers: true, Nodes: 2})
			if err != nil {
				return fmt.Errorf("start control plane %s: %w", name, err)
			}
			clusters[i] = &cluster{name, plane}
			logf("control plane %s is ready at %s", name, plane.URL)
			return plane.CreateWorkloads(ctx, workloads)
		})
	}
	return clusters, group.Wait()
}

func stopClusters(clusters []*cluster) {
	for _, c := range clusters {
		if c != nil {
			_ = c.plane.Stop()
		}
	}
}

// workloads run in each cluster.
var workloads = controlplane.Workloads{Namespace: "demo", Deployments: 8, Replicas: 3}

// serve keeps changing the clusters until ctx ends or a program fails.
func (d *demo) serve(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, c := range d.clusters {
		group.Go(func() error {
			_, err := c.plane.Churn(ctx, workloads, 2)
			return err
		})
	}
	group.Go(func() error { return d.watchChildren(ctx) })
	err := group.Wait()
	fmt.Println() // the terminal shows ^C on the line
	logf("stopping the agents, the server and both clusters")
	return err
}

func (d *demo) printInstructions() {
	bin, err := filepath.Abs("bin")
	if err != nil {
		bin = "bin"
	}
	fmt.Printf(`
Two clusters are live: east, whose agent uses a service account, and west, whose agent
uses a kubeconfig. Their workloads change twice a second.

Try in another terminal:

  export VEDETTE_SERVER=%[1]s
  %[2]s/vedette get pods -A                 pods of both clusters
  %[2]s/vedette get deployments -w          changes as they happen
  %[2]s/vedette get pods -l app=app-0 --account 'ea*' -o wide
  %[2]s/vedette accounts                    how up to date each cluster is
  %[2]s/vedette scale deployment app-0 -n demo --replicas 5 --account 'ea*,west'
  %[2]s/vedette rollout restart deployment/app-1 -n demo --account east
  %[2]s/vedette ops                         the history of operations
  curl -s %[1]s/vedette/v1/feeds            marks and states of all feeds
  curl -s %[1]s/credentials                 what Spinnaker reads

Kubeconfigs for kubectl:
`, d.rest(), bin)
	for _, c := range d.clusters {
		fmt.Printf("  %s  %s\n", c.name, c.plane.Kubeconfig())
	}
	fmt.Printf("\nThe logs of the server and the agents are in %s. Press Ctrl-C to stop everything.\n", d.dir)
}
