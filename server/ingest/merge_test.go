package ingest

import (
	"context"
	"fmt"
	"reflect"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/commit"
)

// slowFirstCommitStore is a store whose first commit blocks until it is released.
type slowFirstCommitStore struct {
	*store.Store
	release chan struct{}
	commits atomic.Int32
}

func (s *slowFirstCommitStore) Commit(ctx context.Context, b commit.Batch) ([]commit.Change, error) {
	if s.commits.Add(1) == 1 {
		select {
		case <-s.release:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return s.Store.Commit(ctx, b)
}

// TestWaitingChangesAreMerged sends changes one by one while their account is stalled. They must be
// stored in few batches, and all acknowledged.
func TestWaitingChangesAreMerged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		blocked := &slowFirstCommitStore{release: make(chan struct{})}
		st, p, responses, term := newTestPipeline(t, func(st *store.Store) Store { blocked.Store = st; return blocked })
		defer st.Close()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- p.Run(ctx) }()
		const changes = 2*maxBatchRows + 10
		putAll(t, p, upsert(term, "o0", 1))
		time.Sleep(2 * maxTaskWait) // bubble time
		for i := 1; i < changes; i++ {
			putAll(t, p, upsert(term, fmt.Sprint("o", i), i+1))
			synctest.Wait() // the pipeline has taken it
		}
		close(blocked.release)
		time.Sleep(time.Minute) // bubble time
		synctest.Wait()
		if n := blocked.commits.Load(); n > 6 {
			t.Errorf("got %d commits for %d waiting changes, want at most 6", n, changes)
		}
		if got := feedRow(t, st); got.Objects != changes || responses.current().acked != changes || got.Mark != vedette.Mark(fmt.Sprint(changes)) {
			t.Errorf("got %d stored, %d acknowledged, mark %s, want %d of each", got.Objects, responses.current().acked, got.Mark, changes)
		}
		cancel()
		<-done
	})
}

// TestMergedBatchEqualsSingleBatch checks that merging two batches gives the same result as adding
// all steps to one.
func TestMergedBatchEqualsSingleBatch(t *testing.T) {
	object := func(name string) vedette.Object {
		return vedette.Object{Key: vedette.Key{Kind: pods.Kind, Namespace: "default", Name: name}}
	}
	steps := []Step{
		{Type: Upsert, Feed: pods, Object: object("a")},
		{Type: Delete, Feed: pods, Object: object("a"), Mark: "2"},
		{Type: Upsert, Feed: pods, Object: object("a"), Mark: "3"},
		{Type: Upsert, Feed: pods, Object: object("b")},
		{Type: Drop, Feed: pods, Digests: []uint64{1}},
		{Type: End, Feed: pods, Mark: "4"},
		{Type: Status, Feed: pods, State: vedette.FeedFailing, Message: "broken"},
		{Type: Bookmark, Feed: pods, Mark: "5"},
		{Type: Delete, Feed: pods, Object: object("b"), Mark: "6"},
		{Type: Drop, Feed: pods, Digests: []uint64{2}},
	}
	synctest.Test(t, func(t *testing.T) { // because the clock stands still in a bubble
		whole := newBatch("prod", 1)
		for _, s := range steps {
			whole.add(s)
		}
		for cut := range steps {
			first, second := newBatch("prod", 1), newBatch("prod", 1)
			for i, s := range steps {
				if i < cut {
					first.add(s)
				} else {
					second.add(s)
				}
			}
			if first.merge(second); !reflect.DeepEqual(first, whole) {
				t.Errorf("cut before step %d: got %+v, want %+v", cut, first, whole)
			}
		}
	})
}
