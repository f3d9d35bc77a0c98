package main

import (
	"context"
	"fmt"
	"net/url"
	"time"
)

// waitFor polls done until it returns true, for up to two minutes.
func (d *demo) waitFor(ctx context.Context, what string, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	var last error
	for {
		ok, err := done()
		if ok {
			return nil
		}
		if err != nil {
			last = err
		}
		if err := d.checkChildren(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("timed out after 2m waiting for %s (last error: %w)", what, last)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (d *demo) awaitHealth(ctx context.Context) error {
	return d.waitFor(ctx, "the server to be healthy", func() (bool, error) {
		var health struct{ Status string }
		err := d.get(ctx, "/health", &health)
		return err == nil && health.Status == "UP", err
	})
}

type feedList struct {
	Items []struct {
		Account string
		State   string
		Objects int
	}
}

// awaitSync waits until all feeds of both clusters are live, and logs the progress.
func (d *demo) awaitSync(ctx context.Context) error {
	shown := ""
	err := d.waitFor(ctx, "both clusters to be live", func() (bool, error) {
		var feeds feedList
		if err := d.get(ctx, "/vedette/v1/feeds", &feeds); err != nil {
			return false, err
		}
		live, objects := map[string]int{}, 0
		all := len(feeds.Items) > 0
		for _, f := range feeds.Items {
			objects += f.Objects
			if f.State == "live" {
				live[f.Account]++
			} else {
				all = false
			}
		}
		if now := fmt.Sprintf("syncing: %d objects, live feeds %v of %d", objects, live, len(feeds.Items)); now != shown {
			shown = now
			logf("%s", now)
		}
		return all && len(live) == len(d.clusters), nil
	})
	if err == nil {
		logf("both clusters are live")
	}
	return err
}

// deployment is the Deployment that check scales.
const deployment = "app-0"

// check scales a Deployment in each cluster twice: in the cluster, until the server returns
// the change, and by an operation through the server.
func (d *demo) check(ctx context.Context) error {
	for _, c := range d.clusters {
		replicas, err := c.replicas(ctx)
		if err != nil {
			return err
		}
		if err := d.checkChange(ctx, c, replicas+1); err != nil {
			return err
		}
		if err := d.checkOperation(ctx, c, replicas); err != nil {
			return err
		}
	}
	logf("check passed")
	return nil
}

func (c *cluster) path() string {
	return "/apis/apps/v1/namespaces/" + workloads.Namespace + "/deployments/" + deployment
}

func (c *cluster) replicas(ctx context.Context) (int, error) {
	var object struct{ Spec struct{ Replicas int } }
	err := c.plane.Get(ctx, c.path(), &object)
	return object.Spec.Replicas, err
}

func (d *demo) checkChange(ctx context.Context, c *cluster, want int) error {
	start := time.Now()
	if err := c.plane.Patch(ctx, c.path(), map[string]any{"spec": map[string]any{"replicas": want}}); err != nil {
		return err
	}
	var view struct {
		Manifest struct{ Spec struct{ Replicas float64 } }
	}
	read := "/manifests/" + c.name + "/" + workloads.Namespace + "/" + url.PathEscape("deployment "+deployment)
	err := d.waitFor(ctx, "GET "+read+" to return the change in "+c.name, func() (bool, error) {
		err := d.get(ctx, read, &view)
		return int(view.Manifest.Spec.Replicas) == want, err
	})
	if err == nil {
		logf("%s: deployment %s scaled to %d in the cluster; GET %s returned it after %d ms", c.name, deployment, want, read,
			time.Since(start).Milliseconds())
	}
	return err
}

func (d *demo) checkOperation(ctx context.Context, c *cluster, want int) error {
	start := time.Now()
	var outcome struct{ State, Message string }
	err := d.post(ctx, "/vedette/v1/operations", map[string]any{"account": c.name, "verb": "scale", "kind": "deployment",
		"namespace": workloads.Namespace, "name": deployment, "replicas": want}, &outcome)
	if err != nil {
		return err
	}
	took := time.Since(start)
	got, err := c.replicas(ctx)
	if err == nil && (outcome.State != "done" || got != want) {
		err = fmt.Errorf("scale deployment %s of %s: got outcome %s %s and %d replicas, want done and %d", deployment, c.name, outcome.State,
			outcome.Message, got, want)
	}
	if err == nil {
		logf("%s: deployment %s scaled back to %d by POST /vedette/v1/operations in %d ms", c.name, deployment, want, took.Milliseconds())
	}
	return err
}
