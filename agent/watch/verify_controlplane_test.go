//go:build linux

package watch_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/watch"
	"github.com/vedette-io/vedette/agent/watch/verify"
)

// recorderComparer compares feeds with what a recorder holds, as a server does with what it stores.
type recorderComparer struct {
	r *recorder

	mu      sync.Mutex
	reports map[vedette.Feed][]watch.VerifyReport
}

func (c *recorderComparer) stored(feed vedette.Feed) (objects []verify.Object, names map[uint64]string) {
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	names = map[uint64]string{}
	for name := range c.r.feeds[feed].objects {
		var o struct {
			Metadata struct{ UID, ResourceVersion, Namespace, Name string }
		}
		if err := json.Unmarshal([]byte(c.r.feeds[feed].bodies[name]), &o); err != nil {
			c.r.addFault("body of %s: %v", name, err)
		}
		digest := vedette.Digest(o.Metadata.Namespace, o.Metadata.Name, o.Metadata.UID, o.Metadata.ResourceVersion)
		objects, names[digest] = append(objects, verify.Object{Digest: digest, Name: vedette.HashName(o.Metadata.Namespace, o.Metadata.Name)}), name
	}
	return objects, names
}

func (c *recorderComparer) Compare(_ context.Context, feed vedette.Feed, r verify.Request) (a verify.Answer, err error) {
	objects, names := c.stored(feed)
	sums := make([]uint64, len(r.Sums))
	for _, o := range objects {
		bucket := vedette.Bucket(o.Digest, r.Bits)
		if len(sums) > 0 {
			sums[bucket] += o.Digest
		}
		if slices.Contains(r.Buckets, uint32(bucket)) {
			a.Objects = append(a.Objects, o)
		}
		if slices.Contains(r.Named, o.Digest) {
			a.Names = append(a.Names, names[o.Digest])
		}
	}
	for i := range sums {
		if sums[i] != r.Sums[i] {
			a.Buckets = append(a.Buckets, uint32(i))
		}
	}
	return a, nil
}

func (c *recorderComparer) Report(_ context.Context, feed vedette.Feed, report watch.VerifyReport) error {
	c.mu.Lock()
	c.reports[feed] = append(c.reports[feed], report)
	c.mu.Unlock()
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	close(c.r.changed) // for await
	c.r.changed = make(chan struct{})
	return nil
}

// found adds up what was reported of a feed, and says how often it was verified.
func (c *recorderComparer) found(feed vedette.Feed) (total verify.Count, examples []string, times int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.reports[feed] {
		total.Add(r.Count)
		examples = append(examples, r.Examples...)
	}
	return total, examples, len(c.reports[feed])
}

// verifyConfig verifies each feed every second. A feed counts as silent after 3 s, because an API
// server sends a bookmark only each minute.
func verifyConfig(c *recorderComparer) watch.Config {
	cfg := fastConfig
	cfg.Comparer, cfg.VerifyInterval, cfg.IdleTimeout = c, time.Second, 3*time.Second
	return cfg
}

// TestDriftIsHealed damages what was read of feeds, as a defect would, and checks that it is repaired,
// counted and named.
func TestDriftIsHealed(t *testing.T) {
	p := newControlPlane(t)
	for i := range 600 { // more than a page
		must(t, p.Create(t.Context(), configMaps, configMap(fmt.Sprintf("m%d", i), "x")))
	}
	for _, name := range []string{"a", "b"} {
		must(t, p.Create(t.Context(), "/api/v1/namespaces/default/secrets", object{"apiVersion": "v1", "kind": "Secret",
			"metadata": object{"name": name}, "stringData": object{"password": "hunter2"}}))
	}
	r := newRecorder()
	c := &recorderComparer{r: r, reports: map[vedette.Feed][]watch.VerifyReport{}}
	start(t, connect(t, p.Kubeconfig()), watch.Selection{Kinds: []string{"cm", "secret"}}, r, verifyConfig(c), nil)
	r.await(t, "all feeds to be live", func() bool { return len(r.feeds) == 2 && allLive(r) })
	r.mu.Lock()
	damaged := r.feeds[configMapFeed]
	delete(damaged.objects, "default/m1")
	damaged.objects["default/ghost"] = "3"
	damaged.bodies["default/ghost"] = `{"metadata":{"uid":"g","resourceVersion":"3","namespace":"default","name":"ghost"}}`
	damaged.objects["default/m2"] = "2"
	damaged.bodies["default/m2"] = `{"metadata":{"uid":"old","resourceVersion":"2","namespace":"default","name":"m2"}}`
	delete(r.feeds[secretFeed].objects, "default/a")
	r.mu.Unlock()
	r.await(t, "the damage to be repaired", func() bool {
		return damaged.objects["default/m1"] != "" && damaged.objects["default/ghost"] == "" && r.feeds[secretFeed].objects["default/a"] != ""
	})
	for feed, want := range map[vedette.Feed]verify.Count{configMapFeed: {Missing: 1, LeftOver: 1, Changed: 1}, secretFeed: {Missing: 1}} {
		awaitReport(t, c, feed, want)
		r.mu.Lock()
		if got, want := r.feeds[feed].objects, listVersions(t, p, pathOf(specOf(r, feed).Resource)); !maps.Equal(got, want) {
			t.Errorf("%s: got %d objects, want %d", feed, len(got), len(want))
		}
		r.mu.Unlock()
	}
	if _, examples, _ := c.found(configMapFeed); !slices.Equal(examples, []string{"default/ghost", "default/m1", "default/m2"}) {
		t.Errorf("got examples %q, want the three objects", examples)
	}
	r.check(t)
}

func specOf(r *recorder, feed vedette.Feed) watch.FeedSpec {
	return r.specs[slices.IndexFunc(r.specs, func(s watch.FeedSpec) bool { return s.Feed == feed })]
}

// awaitReport waits until drift was reported, and checks how much.
func awaitReport(t *testing.T, c *recorderComparer, feed vedette.Feed, want verify.Count) {
	t.Helper()
	c.r.await(t, "the report of "+feed.String(), func() bool {
		got, _, _ := c.found(feed)
		return got.Total() > 0
	})
	if got, _, _ := c.found(feed); got != want {
		t.Errorf("%s: got %+v, want %+v", feed, got, want)
	}
}

// TestBusyObjectsAreNotDrift verifies feeds while their objects change all the time.
func TestBusyObjectsAreNotDrift(t *testing.T) {
	p := newControlPlane(t)
	r := newRecorder()
	c := &recorderComparer{r: r, reports: map[vedette.Feed][]watch.VerifyReport{}}
	start(t, connect(t, p.Kubeconfig()), watch.Selection{Kinds: []string{"cm"}}, r, verifyConfig(c), nil)
	r.await(t, "the feed to be live", func() bool { return allLive(r) })
	for i := 0; ; i++ {
		if _, _, times := c.found(configMapFeed); times >= 5 {
			break
		}
		name := fmt.Sprintf("busy%d", i%7)
		if i%21 < 7 {
			must(t, p.Create(t.Context(), configMaps, configMap(name, "x")))
		} else if i%21 < 14 {
			must(t, p.Patch(t.Context(), configMaps+"/"+name, object{"data": object{"value": fmt.Sprint(i)}}))
		} else {
			must(t, p.Delete(t.Context(), configMaps+"/"+name))
		}
	}
	if found, examples, _ := c.found(configMapFeed); found.Total() > 0 {
		t.Errorf("got drift %+v of %q, want none", found, examples)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := r.feeds[configMapFeed].snapshots; n != 1 {
		t.Errorf("got %d snapshots, want 1", n)
	}
}
