package convergence

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/vedette-io/vedette/test/controlplane"
)

// bulk creates many small objects of two kinds, so that two feeds are large.
type bulk struct {
	cluster *cluster
	rng     *rand.Rand
	n       int // of each kind
}

// bulkKinds are kinds whose objects need only metadata.
var bulkKinds = []kind{configMap, builtIn[3]}

// store writes the objects of one of ten parts. Existing objects get new uids.
func (b *bulk) store(ctx context.Context, part int) error {
	var objects []controlplane.Stored
	for _, k := range bulkKinds {
		for i := part; i < b.n; i += 10 {
			name := fmt.Sprintf("bulk-%d-%d", part, i)
			objects = append(objects, controlplane.Stored{Resource: k.plural, Namespace: namespaces[0], Name: name, Object: object{
				"apiVersion": k.apiVersion(), "kind": k.name, "metadata": object{
					"name": name, "namespace": namespaces[0], "uid": b.uid(), "creationTimestamp": "2026-01-01T00:00:00Z"},
			}})
		}
	}
	return b.cluster.Store(ctx, objects)
}

func (b *bulk) remove(ctx context.Context, part int) error {
	for _, k := range bulkKinds {
		if err := b.cluster.DeleteStored(ctx, k.plural, namespaces[0], fmt.Sprintf("bulk-%d-", part)); err != nil {
			return err
		}
	}
	return nil
}

func (b *bulk) uid() string {
	return fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", b.rng.Uint32(), b.rng.IntN(1<<16), b.rng.IntN(1<<12), b.rng.IntN(1<<12), b.rng.Uint64()>>16)
}

// replaceParts removes some parts and replaces others while the API server is down, and expires all
// marks, so that agents must list again and find out what is gone.
func (b *bulk) replaceParts(ctx context.Context, removed, replaced []int) error {
	b.cluster.KillAPIServer()
	for _, part := range removed {
		if err := b.remove(ctx, part); err != nil {
			return err
		}
	}
	for _, part := range replaced {
		if err := b.store(ctx, part); err != nil {
			return err
		}
	}
	return b.cluster.Expire(ctx)
}

// TestLargeResync removes most of many objects while an agent cannot see it, and makes it list
// again over a slow link with high latency. The server's digests take longer to send than to read,
// so messages of two feeds and two accounts must wait for their turn at the same time.
func TestLargeResync(t *testing.T) {
	s := topology{clusters: 1, accounts: []int{0, 0}, agents: [][]int{{0, 1}}, outbox: "8MiB", grace: "10m"}
	runOn(t, anyDatabase(), s, func(t *testing.T, w *world) {
		ctx := t.Context()
		b := &bulk{cluster: w.clusters[0], rng: rand.New(rand.NewPCG(5, 5)), n: *bulkObjects / len(bulkKinds)}
		must(t, b.replaceParts(ctx, nil, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}))
		w.awaitConvergence()
		w.agents[0].link.AddLatency(50 * time.Millisecond)
		w.agents[0].link.Limit(256 << 10)
		must(t, b.replaceParts(ctx, []int{0, 1, 2, 3, 4, 5, 6}, []int{7}))
		w.awaitConvergence()
	})
}
