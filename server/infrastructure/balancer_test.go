package infrastructure

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/read"
)

// sharedNamespace has an application with a Service that selects one of many workloads of another
// application.
type sharedNamespace struct {
	*memoryStore
	workloads []Object
	reads     atomic.Int64 // of workloads
	proceed   chan error   // if set, ends a read of workloads
}

func newSharedNamespace() *sharedNamespace {
	s := &sharedNamespace{memoryStore: newMemoryStore(), workloads: []Object{object("replicaSet shop/other", labeled("app=web"))}}
	for range 1000 {
		s.workloads = append(s.workloads, object("replicaSet shop/unrelated", labeled("app=x")))
	}
	s.own["web"] = []Object{object("replicaSet shop/web-1", labeled("app=web")), object("service shop/web", selecting("app=web"))}
	return s
}

func (s *sharedNamespace) NeighborAttributes(_ context.Context, _ string, _, kinds []vedette.Kind) ([]Object, error) {
	if !slices.Contains(kinds, replicaSet) {
		return nil, nil
	}
	s.reads.Add(1)
	if s.proceed != nil {
		if err := <-s.proceed; err != nil {
			return nil, err
		}
	}
	return slices.Clone(s.workloads), nil
}

func (s *sharedNamespace) AttributesOwnedBy(_ context.Context, owners []read.OwnerRef, _ []vedette.Kind) ([]Object, error) {
	if !slices.Equal(owners, []read.OwnerRef{{Account: "prod", UID: "replicaSet shop/other"}}) {
		return nil, errors.New("asked for Pods of other workloads")
	}
	return []Object{object("pod shop/p", ownedBy("replicaSet shop/other"))}, nil
}

func balancedGroups(t *testing.T, a *CachedApplication) []string {
	t.Helper()
	balancers, err := a.Balancers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, b := range balancers {
		for _, g := range b.ServerGroups {
			names = append(names, b.Name+" to "+g.Name)
			for _, i := range g.Instances {
				names = append(names, i.Name)
			}
		}
	}
	return names
}

// TestWorkloadsOfOthersAreReadForBalancers checks that they are read only if someone asks for load
// balancers, once per state of the application, and that those without traffic are not kept.
func TestWorkloadsOfOthersAreReadForBalancers(t *testing.T) {
	s := newSharedNamespace()
	r := NewReader(configOf(s))
	a := readApplication(t, r, "web")
	if n := s.reads.Load(); n != 0 {
		t.Errorf("got %d reads of workloads before anyone asked, want none", n)
	}
	before := r.cache.bytes
	want := []string{"web to other", "p", "web to web-1"}
	for range 2 {
		if got := balancedGroups(t, a); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	if n := s.reads.Load(); n != 1 {
		t.Errorf("got %d reads of workloads, want 1", n)
	}
	if grown := r.cache.bytes - before; grown <= 0 || grown > 10<<10 {
		t.Errorf("the application grew by %d bytes, want those of one workload and its Pod", grown)
	}
	s.change(func() { s.namespaces++ })
	s.workloads = nil
	if got := balancedGroups(t, readApplication(t, r, "web")); !slices.Equal(got, []string{"web to web-1"}) {
		t.Errorf("after a change: got %v, want web-1 only", got)
	}
}

// TestReadsOfBalancersAreShared checks that requests wait for one read, that one can leave, and that
// an error is not kept.
func TestReadsOfBalancersAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSharedNamespace()
		s.proceed = make(chan error)
		a := readApplication(t, NewReader(configOf(s)), "web")
		ctx, cancel := context.WithCancel(t.Context())
		results := make(chan error)
		ask := func(ctx context.Context) {
			_, err := a.Balancers(ctx)
			results <- err
		}
		go ask(ctx)
		synctest.Wait()
		go ask(t.Context())
		synctest.Wait()
		cancel()
		if err := <-results; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v for the one that left, want %v", err, context.Canceled)
		}
		away := errors.New("the database is away")
		s.proceed <- away
		if err := <-results; !errors.Is(err, away) || s.reads.Load() != 1 {
			t.Errorf("got %v and %d reads, want %v and 1", err, s.reads.Load(), away)
		}
		go ask(t.Context())
		s.proceed <- nil
		if err := <-results; err != nil {
			t.Errorf("got %v after an error, want none", err)
		}
	})
}
