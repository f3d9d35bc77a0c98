package store

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/vedette-io/vedette"
)

// TestPreparingHoldsNobodyUp stops a commit after it has read what is stored.
// Operations write meanwhile, one of them what the commit has read about.
func TestPreparingHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSite(t)
		lookup, release := w.dialect.lookup, make(chan struct{})
		w.dialect.lookup = func(ctx context.Context, s *Store, account int64, keys []rowKey, found func(storedRow)) error {
			err := lookup(ctx, s, account, keys, found)
			if len(keys) == 3 {
				<-release
			}
			return err
		}
		told := make(chan []Change, 1)
		go func() { told <- w.commit(12, podAt(1, 12), podAt(2, 5), podAt(3, 5)) }()
		synctest.Wait()
		w.through(podAt(1, 9))
		w.through(podAt(2, 9))
		w.through(podAt(4, 9))
		w.dialect.lookup = lookup
		close(release)
		if got := typesOf(<-told); !slices.Equal(got, []string{"pod-1 modified 12", "pod-3 added 5"}) {
			t.Errorf("the commit changed %q", got)
		}
		if feed := w.feed(); feed.Objects != 4 || feed.Mark != "12" {
			t.Errorf("the feed has %d objects and the mark %s; want 4 and 12", feed.Objects, feed.Mark)
		}
		w.must(w.Close())
	})
}

func typesOf(changes []Change) (lines []string) {
	for _, c := range changes {
		lines = append(lines, fmt.Sprint(c.Key.Name, " ", c.Type, " ", c.Version))
	}
	slices.Sort(lines)
	return lines
}

// TestOperationsBesideAFeed has operations change a cluster and write through, while
// its feed tells the same, late.
func TestOperationsBesideAFeed(t *testing.T) {
	const pods, operators, deeds = 400, 4, 100
	w := newSite(t)
	c := &history{changes: podsAt(0, pods, 1)}
	var operating sync.WaitGroup
	for o := range operators {
		operating.Go(func() {
			for i := range deeds {
				pod := c.change(i*7 + o*100)
				w.through(pod)
				if row, err := w.Object(context.Background(), "prod", pod.Key); err != nil || before(row.ResourceVersion, versionOf(pod)) {
					t.Errorf("%s was written at %s and is read at %s, %v", pod.Key, pod.ResourceVersion, row.ResourceVersion, err)
				}
			}
		})
	}
	over := make(chan struct{})
	go func() { operating.Wait(); close(over) }()
	for told := 0; !isClosed(over) || told < c.len(); {
		told = w.tell(c, told)
	}
	page, err := w.Objects(context.Background(), Query{Limit: 1000})
	w.must(err)
	got, want := map[string]string{}, map[string]string{}
	for _, row := range page.Items {
		got[row.Name] = row.ResourceVersion
	}
	for _, o := range c.changes {
		want[o.Name] = o.ResourceVersion
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("stored is %v\nthe cluster has %v", got, want)
	}
	if feed := w.feed(); feed.Objects != pods {
		t.Errorf("the feed counts %d objects, want %d", feed.Objects, pods)
	}
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func versionOf(o vedette.Object) uint64 {
	n, _ := versionNumber(o.ResourceVersion)
	return n
}

// history is what happened in a cluster, in order.
type history struct {
	mu      sync.Mutex
	changes []vedette.Object
}

func (h *history) len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.changes)
}

// change makes a new version of a pod.
func (h *history) change(n int) vedette.Object {
	h.mu.Lock()
	defer h.mu.Unlock()
	pod := podAt(n%400, len(h.changes)+1)
	h.changes = append(h.changes, pod)
	return pod
}

// after returns the newest of at most n changes after the first so many.
func (h *history) after(from, n int) (newest map[string]vedette.Object, to int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	newest, to = map[string]vedette.Object{}, min(len(h.changes), from+n)
	for _, o := range h.changes[from:to] {
		newest[o.Name] = o
	}
	return newest, to
}

// tell commits some of what happened after what was told.
func (w *site) tell(h *history, told int) int {
	newest, to := h.after(told, 150)
	var pods []vedette.Object
	for _, o := range newest {
		pods = append(pods, o)
	}
	w.commit(max(1, to), pods...)
	return to
}
