//go:build linux

package watch_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/kube/kubetest"
	"github.com/vedette-io/vedette/agent/watch"
	"github.com/vedette-io/vedette/agent/watch/verify"
)

// damagedStore is a recorder that compares, and that does not store some objects or keeps others, as a server with
// a defect.
type damagedStore struct {
	*recorder
	recorderComparer

	damageMu  sync.Mutex
	unstored  string // an object that is not stored; "" for none
	ghost     string // an object that no snapshot removes; "" for none
	compared  int
	snapshots int
}

func newDamagedStore() *damagedStore {
	r := newRecorder()
	return &damagedStore{recorder: r, recorderComparer: recorderComparer{r: r, reports: map[vedette.Feed][]watch.VerifyReport{}}}
}

func (s *damagedStore) set(unstored, ghost string) {
	s.damageMu.Lock()
	defer s.damageMu.Unlock()
	s.unstored, s.ghost = unstored, ghost
}

// Put damages what a snapshot has stored. The recorder applies damage only then, so that what is not damaged
// anymore is stored by the next snapshot.
func (s *damagedStore) Put(ctx context.Context, e watch.Event) error {
	err := s.recorder.Put(ctx, e)
	if e.Type != watch.End {
		return err
	}
	s.recorder.mu.Lock() // before damageMu, because conditions of await use counts
	defer s.recorder.mu.Unlock()
	s.damageMu.Lock()
	defer s.damageMu.Unlock()
	s.snapshots++
	close(s.recorder.changed) // for await
	s.recorder.changed = make(chan struct{})
	f := s.recorder.feeds[e.Feed]
	if s.unstored != "" {
		delete(f.objects, "default/"+s.unstored)
	}
	if s.ghost != "" {
		f.objects["default/"+s.ghost] = "3"
		f.bodies["default/"+s.ghost] = fmt.Sprintf(`{"metadata":{"uid":"g","resourceVersion":"3","namespace":"default","name":%q}}`, s.ghost)
	}
	return err
}

// Compare implements watch.Comparer.
func (s *damagedStore) Compare(ctx context.Context, feed vedette.Feed, r verify.Request) (verify.Answer, error) {
	s.damageMu.Lock()
	s.compared++
	s.damageMu.Unlock()
	return s.recorderComparer.Compare(ctx, feed, r)
}

func (s *damagedStore) counts() (snapshots, compared int) {
	s.damageMu.Lock()
	defer s.damageMu.Unlock()
	return s.snapshots, s.compared
}

// startDamaged watches ConfigMaps m1 and m2, and verifies them all the time.
func startDamaged(t *testing.T, s *damagedStore, interval time.Duration) *watch.Watcher {
	var items []string
	for i, name := range []string{"m1", "m2"} {
		items = append(items, fmt.Sprintf(`{"metadata":{"namespace":"default","name":%q,"uid":"u%d","resourceVersion":"4"}}`, name, i))
	}
	server := newAPIServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("watch") {
			kubetest.Hang(w, r, "")
			return
		}
		fmt.Fprintf(w, `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[%s]}`, strings.Join(items, ","))
	})
	cfg := verifyConfig(&s.recorderComparer)
	cfg.Comparer, cfg.VerifyInterval, cfg.IdleTimeout = s, interval, time.Minute
	w, _ := start(t, kubetest.Connect(t, server, kube.Options{}), watch.Selection{Kinds: []string{"configmap"}}, s, cfg, nil)
	return w
}

// verifications returns how often the feed was found equal to its cluster.
func (s *damagedStore) verifications() int {
	_, _, times := s.found(configMapFeed)
	return times
}

// awaitVerified waits for further verifications.
func (s *damagedStore) awaitVerified(t *testing.T, what string) {
	t.Helper()
	before := s.verifications()
	s.recorder.await(t, what, func() bool { return s.verifications() >= before+2 })
}

// TestObjectThatCanBeStoredAtLast checks an object that the server could not store, and that it stores after it
// was changed or upgraded: it is not left over, although verifications have left it out.
func TestObjectThatCanBeStoredAtLast(t *testing.T) {
	s := newDamagedStore()
	s.set("m1", "")
	w := startDamaged(t, s, 50*time.Millisecond)
	s.awaitVerified(t, "a verification without the object that cannot be stored")
	if found, examples, _ := s.found(configMapFeed); found.Total() != 0 {
		t.Errorf("got drift %+v of %q, want none", found, examples)
	}
	s.set("", "")
	beforeReset, _ := s.counts()
	if !w.Reset(configMapFeed, "") {
		t.Fatal("the feed is not watched")
	}
	s.recorder.await(t, "the object to be stored by a snapshot that ends", func() bool {
		snapshots, _ := s.counts()
		return snapshots > beforeReset && s.recorder.has(configMapFeed, "default/m1")
	})
	before, _ := s.counts()
	s.awaitVerified(t, "a verification with the object")
	if after, _ := s.counts(); after != before {
		t.Errorf("got %d further snapshots, want none", after-before)
	}
	if found, examples, _ := s.found(configMapFeed); found.Total() != 0 {
		t.Errorf("got drift %+v of %q, want none", found, examples)
	}
	s.recorder.mu.Lock()
	delete(s.recorder.feeds[configMapFeed].objects, "default/m1")
	s.recorder.mu.Unlock()
	s.recorder.await(t, "the object to be healed like others", func() bool { return s.recorder.has(configMapFeed, "default/m1") })
}

// TestDriftThatIsNotHealedAtOnce checks that a feed which was read anew several times without success is not given
// up, because the cause may end.
func TestDriftThatIsNotHealedAtOnce(t *testing.T) {
	s := newDamagedStore()
	s.set("", "ghost")
	startDamaged(t, s, 500*time.Millisecond)
	s.recorder.await(t, "the feed to be read anew", func() bool { snapshots, _ := s.counts(); return snapshots >= 4 })
	s.set("", "")
	s.recorder.await(t, "the left over object to disappear", func() bool { return !s.recorder.has(configMapFeed, "default/ghost") })
	s.awaitVerified(t, "a verification")
	if found, examples, _ := s.found(configMapFeed); found.LeftOver == 0 || !slices.Contains(examples, "default/ghost") {
		t.Errorf("got drift %+v of %q, want a left over object", found, examples)
	}
}
