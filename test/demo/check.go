package main

import (
	"context"
	"fmt"
	"net/url"
	"time"
)

// await asks again and again, until done or two minutes are over.
func (d *demo) await(ctx context.Context, what string, done func() (bool, error)) error {
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
		if err := d.dead(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited in vain for %s (last: %v)", what, last)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (d *demo) awaitHealth(ctx context.Context) error {
	return d.await(ctx, "the server's health", func() (bool, error) {
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

// awaitSync waits until every feed of both clusters is live, and shows how far
// they are.
func (d *demo) awaitSync(ctx context.Context) error {
	shown := ""
	err := d.await(ctx, "both clusters to be live", func() (bool, error) {
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
			say("%s", now)
		}
		return all && len(live) == len(d.clusters), nil
	})
	if err == nil {
		say("both clusters are live")
	}
	return err
}

// check scales a Deployment in each cluster and waits until readers see it.
func (d *demo) check(ctx context.Context) error {
	for _, c := range d.clusters {
		var before struct{ Spec struct{ Replicas int } }
		path := "/apis/apps/v1/namespaces/" + workloads.Namespace + "/deployments/app-0"
		if err := c.plane.Get(ctx, path, &before); err != nil {
			return err
		}
		want := before.Spec.Replicas + 1
		start := time.Now()
		if err := c.plane.Patch(ctx, path, map[string]any{"spec": map[string]any{"replicas": want}}); err != nil {
			return err
		}
		var view struct {
			Manifest struct{ Spec struct{ Replicas float64 } }
		}
		read := "/manifests/" + c.name + "/" + workloads.Namespace + "/" + url.PathEscape("deployment app-0")
		err := d.await(ctx, "the change in "+c.name+" to show in "+read, func() (bool, error) {
			err := d.get(ctx, read, &view)
			return int(view.Manifest.Spec.Replicas) == want, err
		})
		if err != nil {
			return err
		}
		say("%s: deployment app-0 scaled from %d to %d; GET %s showed it after %d ms",
			c.name, before.Spec.Replicas, want, read, time.Since(start).Milliseconds())
	}
	say("check passed")
	return nil
}
