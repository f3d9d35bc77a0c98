package write_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/admission"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/storetest"
	"github.com/vedette-io/vedette/server/store/write"
)

// TestPreparingDoesNotBlockOperations stops a commit after it has read what is stored. Operations
// write meanwhile, also to objects that the commit has read.
func TestPreparingDoesNotBlockOperations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		release := make(chan struct{})
		f.AfterLookup(func(keys int) {
			if keys == 3 {
				<-release
			}
		})
		result := make(chan []commit.Change, 1)
		go func() {
			result <- f.CommitPods(12, storetest.PodAt(1, 12), storetest.PodAt(2, 5), storetest.PodAt(3, 5))
		}()
		synctest.Wait()
		f.WritePodThrough(storetest.PodAt(1, 9))
		f.WritePodThrough(storetest.PodAt(2, 9))
		f.WritePodThrough(storetest.PodAt(4, 9))
		close(release)
		if got := describeChanges(<-result); !slices.Equal(got, []string{"pod-1 modified 12", "pod-3 added 5"}) {
			t.Errorf("got changes %q, want pod-1 modified and pod-3 added", got)
		}
		if feed := f.Feed(); feed.Objects != 4 || feed.Mark != "12" {
			t.Errorf("got %d objects and mark %s, want 4 and 12", feed.Objects, feed.Mark)
		}
		f.Must(f.Close())
	})
}

func describeChanges(changes []commit.Change) (lines []string) {
	for _, c := range changes {
		lines = append(lines, fmt.Sprint(c.Key.Name, " ", c.Type, " ", c.Version))
	}
	slices.Sort(lines)
	return lines
}

// TestCommitsAreSplitForPriority stops a commit in its first transaction until an operation waits
// to write.
func TestCommitsAreSplitForPriority(t *testing.T) {
	tests := []struct {
		name        string
		prioritized vedette.AccountName
		want        []string // the rows of each transaction, and the mark before it
	}{
		{"no operation is in progress", "", []string{"200", "1 after 7"}},
		{"an operation is in progress", "prod", []string{"64", "1", "64", "64", "8"}},
		{"an operation of another account waits for the only writer", "other", []string{"64", "1", "64", "64", "8"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				end := f.Prioritize(tt.prioritized)
				if tt.prioritized == "" {
					end()
					time.Sleep(admission.GracePeriod + 1) // in the bubble's time
				}
				begun, release := make(chan struct{}), make(chan struct{})
				written := f.recordUpserts(begun, release)
				go f.CommitPods(7, storetest.PodsAt(0, 200, 7)...)
				<-begun
				go f.WritePodThrough(storetest.PodAt(300, 9))
				synctest.Wait()
				close(release)
				synctest.Wait()
				if feed := f.Feed(); feed.Mark != "7" || feed.Objects != 201 {
					t.Errorf("got %d objects and mark %s, want 201 and 7", feed.Objects, feed.Mark)
				}
				end()
				time.Sleep(admission.GracePeriod + 1)
				f.CommitPods(8, storetest.PodsAt(400, 200, 8)...)
				if want := append(tt.want, "200 after 7"); !slices.Equal(*written, want) { // the operation has ended
					t.Errorf("got transactions of %q rows, want %q", *written, want)
				}
				f.Must(f.Close())
			})
		})
	}
}

// recordUpserts records the number of rows of each upsert, and blocks the first one.
func (f *fixture) recordUpserts(begun, release chan struct{}) *[]string {
	var written []string
	f.BeforeUpsert(func(rows int) {
		line := fmt.Sprint(rows)
		if mark := f.Feed().Mark; mark != "" {
			line += " after " + string(mark)
		}
		written = append(written, line)
		if len(written) == 1 {
			close(begun)
			<-release
		}
	})
	return &written
}

func TestBatchesAreCutAtTheLimit(t *testing.T) {
	drops := []commit.Drop{{Feed: storetest.PodFeed, Digests: []uint64{1}}}
	tests := []struct {
		name  string
		batch commit.Batch
		limit int
		want  []int // upserts of each
	}{
		{"no limit", commit.Batch{Upserts: storetest.PodsAt(0, 200, 1)}, 0, []int{200}},
		{"small enough", commit.Batch{Upserts: storetest.PodsAt(0, 64, 1)}, 64, []int{64}},
		{"too large", commit.Batch{Upserts: storetest.PodsAt(0, 65, 1), Feeds: []commit.FeedUpdate{{Feed: storetest.PodFeed}}}, 64, []int{64, 1}},
		{"drops must not remove what the same batch writes", commit.Batch{Upserts: storetest.PodsAt(0, 200, 1), Drops: drops}, 64, []int{200}},
	}
	for _, tt := range tests {
		var got []int
		chunks := write.Chunks(tt.batch, tt.limit)
		for i, b := range chunks {
			got = append(got, len(b.Upserts))
			if i < len(chunks)-1 && (len(b.Feeds) > 0 || len(b.Deletes) > 0) {
				t.Errorf("%s: got marks or deletions before the last chunk, want them in the last chunk", tt.name)
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: got chunks of %d, want %d", tt.name, got, tt.want)
		}
	}
}

// TestOperationsWriteBetweenIndexChunks writes an object through between two chunks of a feed's
// index.
func TestOperationsWriteBetweenIndexChunks(t *testing.T) {
	f := newFixture(t)
	const pods = write.IndexChunkSize + 10
	f.CommitPods(5, storetest.PodsAt(0, pods, 5)...)
	f.Must(f.BeginSnapshot(context.Background(), "prod", f.Term, storetest.PodFeed))
	var chunks []int
	f.Must(f.Index(context.Background(), "prod", storetest.PodFeed, func(digests []uint64) error {
		chunks = append(chunks, len(digests))
		f.WritePodThrough(storetest.PodAt(len(chunks), 9))
		return nil
	}))
	if want := []int{write.IndexChunkSize, 10}; !slices.Equal(chunks, want) || write.IndexChunkSize > 5000 {
		t.Errorf("got index chunks of %d, want %d, and none larger than 5000", chunks, want)
	}
	row, err := f.Object(context.Background(), "prod", storetest.PodAt(1, 0).Key)
	if err != nil || row.ResourceVersion != "9" {
		t.Errorf("got version %q, %v, want 9, which was written meanwhile", row.ResourceVersion, err)
	}
}

// TestConcurrentOperationsAndFeed has operations change a cluster and write through, while its
// feed reports the same changes late and in batches that are split.
func TestConcurrentOperationsAndFeed(t *testing.T) {
	const pods, operators, changesEach = 400, 4, 100
	f := newFixture(t)
	c := &clusterHistory{changes: storetest.PodsAt(0, pods, 1)}
	var operating sync.WaitGroup
	for o := range operators {
		operating.Go(func() {
			for i := range changesEach {
				end := f.Prioritize("prod")
				pod := c.change(i*7 + o*100)
				f.WritePodThrough(pod)
				if row, err := f.Object(context.Background(), "prod", pod.Key); err != nil || versionOf(row.Object) < versionOf(pod) {
					t.Errorf("%s: got version %s, %v, want %s or newer", pod.Key, row.ResourceVersion, err, pod.ResourceVersion)
				}
				end()
			}
		})
	}
	done := make(chan struct{})
	go func() { operating.Wait(); close(done) }()
	for reported := 0; !isClosed(done) || reported < c.len(); {
		reported = f.commitHistory(c, reported)
	}
	page, err := f.Objects(context.Background(), read.Query{Limit: 1000})
	f.Must(err)
	got, want := map[string]string{}, map[string]string{}
	for _, row := range page.Items {
		got[row.Name] = row.ResourceVersion
	}
	for _, o := range c.changes {
		want[o.Name] = o.ResourceVersion
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
	if feed := f.Feed(); feed.Objects != pods {
		t.Errorf("got a count of %d objects, want %d", feed.Objects, pods)
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

func versionOf(o vedette.Object) int {
	n, _ := strconv.Atoi(o.ResourceVersion)
	return n
}

// clusterHistory is the changes of a cluster, in order.
type clusterHistory struct {
	mu      sync.Mutex
	changes []vedette.Object
}

func (h *clusterHistory) len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.changes)
}

// change creates a new version of a pod.
func (h *clusterHistory) change(n int) vedette.Object {
	h.mu.Lock()
	defer h.mu.Unlock()
	pod := storetest.PodAt(n%400, len(h.changes)+1)
	h.changes = append(h.changes, pod)
	return pod
}

// after returns the newest versions in at most n changes, starting at an index.
func (h *clusterHistory) after(from, n int) (newest map[string]vedette.Object, to int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	newest, to = map[string]vedette.Object{}, min(len(h.changes), from+n)
	for _, o := range h.changes[from:to] {
		newest[o.Name] = o
	}
	return newest, to
}

// commitHistory commits some of the changes that have not been reported yet.
func (f *fixture) commitHistory(h *clusterHistory, reported int) int {
	newest, to := h.after(reported, 150)
	var pods []vedette.Object
	for _, o := range newest {
		pods = append(pods, o)
	}
	f.CommitPods(max(1, to), pods...)
	return to
}
