package infrastructure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette/server/store/read"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/accountlist"
	"github.com/vedette-io/vedette/server/attributes"
	"github.com/vedette-io/vedette/server/store/registry"
	storeversions "github.com/vedette-io/vedette/server/store/versions"
)

func containerState(name string, ready bool) attributes.Container {
	return attributes.Container{Name: name, Ready: ready}
}

// memoryStore holds the rows of applications, and counts the reads.
type memoryStore struct {
	mu           sync.Mutex
	own          map[string][]Object
	onlyManaged  bool
	applications uint64
	namespaces   uint64
	accounts     uint64
	reads        int
	accountReads int
	err          error
	leaseErr     error
	// entered and proceed, if set, stop a read before it looks at the rows.
	entered, proceed chan struct{}
}

func (s *memoryStore) ApplicationAttributes(_ context.Context, application string, _ []vedette.Kind) ([]Object, error) {
	if s.entered != nil {
		s.entered <- struct{}{}
		<-s.proceed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	return s.own[application], s.err
}

func (s *memoryStore) count() ([]Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	return nil, nil
}

func (s *memoryStore) OwnedAttributes(context.Context, string, []vedette.Kind, []vedette.Kind) ([]Object, error) {
	return s.count()
}

func (s *memoryStore) NeighborAttributes(context.Context, string, []vedette.Kind, []vedette.Kind) ([]Object, error) {
	return s.count()
}

func (s *memoryStore) AttributesOwnedBy(context.Context, []read.OwnerRef, []vedette.Kind) ([]Object, error) {
	return s.count()
}

func (s *memoryStore) KindAttributes(context.Context, read.AttributesQuery) ([]Object, error) {
	return s.count()
}

func (s *memoryStore) Accounts(context.Context) ([]registry.Account, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.accountReads++
	return []registry.Account{{Account: vedette.Account{Name: "prod", Properties: vedette.Properties{OnlySpinnakerManaged: s.onlyManaged}}}}, nil
}

func (s *memoryStore) AccountsNamed(ctx context.Context, _ ...vedette.AccountName) ([]registry.Account, error) {
	return s.Accounts(ctx)
}

// ChangedAccounts reports that prod has changed whenever any account has.
func (s *memoryStore) ChangedAccounts(since uint64) storeversions.AccountChanges {
	s.mu.Lock()
	defer s.mu.Unlock()
	if since == s.accounts {
		return storeversions.AccountChanges{Mark: since}
	}
	return storeversions.AccountChanges{Names: []vedette.AccountName{"prod"}, Mark: s.accounts}
}

func (s *memoryStore) ChangeMark() uint64 { return 0 }

// ChangedObjects reports that it does not know them.
func (s *memoryStore) ChangedObjects(uint64, func(read.ObjectRef)) (uint64, bool) { return 0, false }

func (s *memoryStore) AttributesOf(context.Context, []read.ObjectRef) ([]Object, error) {
	return s.count()
}

func (s *memoryStore) NamespaceAttributes(context.Context, []read.NamespaceRef, vedette.Kind) ([]Object, error) {
	return s.count()
}

func (s *memoryStore) ApplicationVersion(string) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.applications
}

func (s *memoryStore) NamespaceVersion(vedette.AccountName, string) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.namespaces
}

func (s *memoryStore) CheckLease(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leaseErr
}

func (s *memoryStore) AccountsVersion() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accounts
}

// testStore is a memoryStore, or one that embeds it.
type testStore interface {
	Store
	accountlist.Store
}

func configOf(s testStore) Config { return Config{Store: s, Accounts: accountlist.NewCache(s)} }

// change changes the store, and then its versions.
func (s *memoryStore) change(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
}

func newMemoryStore() *memoryStore {
	return &memoryStore{own: map[string][]Object{"web": {object("replicaSet shop/web-1", nil)}}}
}

func readApplication(t *testing.T, r *Reader, name string) *CachedApplication {
	t.Helper()
	s, err := r.Application(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestUnchangedApplicationIsNotReadAgain(t *testing.T) {
	s := newMemoryStore()
	r := NewReader(configOf(s))
	first := readApplication(t, r, "web")
	if s.reads != 4 {
		t.Errorf("got %d reads, want 4", s.reads)
	}
	if again := readApplication(t, r, "web"); again != first || s.reads != 4 || s.accountReads != 1 {
		t.Errorf("unchanged: got %d reads and %d of accounts, want none more than 4 and 1", s.reads, s.accountReads)
	}
	for name, change := range map[string]func(){
		"application": func() { s.applications++ }, "namespace": func() { s.namespaces++ },
	} {
		before := s.reads
		s.change(change)
		if readApplication(t, r, "web"); s.reads != before+4 {
			t.Errorf("a change of the %s: got %d reads, want 4", name, s.reads-before)
		}
	}
	before := s.reads
	s.change(func() { s.accounts++ })
	if readApplication(t, r, "web"); s.reads != before || s.accountReads != 2 {
		t.Errorf("another account: got %d reads and %d of accounts, want none and 2", s.reads-before, s.accountReads)
	}
	s.change(func() { s.accounts++; s.onlyManaged = true })
	if got := readApplication(t, r, "web"); len(got.ServerGroups) != 0 {
		t.Errorf("got %s, want nothing in an account that shows only what Spinnaker deployed", describe(got.Application))
	}
}

// someApplications shows those applications that it has.
type someApplications struct {
	names   map[string]bool
	version uint64
}

func (a *someApplications) Snapshot() (func(string) bool, uint64) {
	names := a.names
	return func(name string) bool { return names[name] }, a.version
}

// TestHiddenApplicationsShowOnlyPods shows only some applications: of others neither objects nor Services are
// shown, but Pods are.
func TestHiddenApplicationsShowOnlyPods(t *testing.T) {
	s := newMemoryStore()
	applications := &someApplications{names: map[string]bool{"web": true}}
	r := NewReader(Config{Store: s, Accounts: accountlist.NewCache(s), Applications: applications})
	if got := readApplication(t, r, "web"); len(got.ServerGroups) != 1 {
		t.Errorf("got %s, want a server group", describe(got.Application))
	}
	applications.names, applications.version = map[string]bool{"other": true}, 1
	if got := readApplication(t, r, "web"); len(got.ServerGroups) != 0 {
		t.Errorf("hidden: got %s, want nothing", describe(got.Application))
	}
	ofOther := func(o *Object) { o.Moniker.App = "other" }
	rows := Rows{Visibility: Visibility{Known: func(name string) bool { return name == "web" }}, Own: []Object{object("replicaSet shop/web-1", labeled("app=web"))},
		Services: []Object{object("service shop/other", func(o *Object) { selecting("app=web")(o); ofOther(o) })},
		Pods:     []Object{object("pod shop/p", func(o *Object) { ownedBy("replicaSet shop/web-1")(o); ofOther(o) })}}
	want := `prod shop/replicaSet web-1: instances [p], balancers [], manager "", disabled false` + "\n"
	if got := describe(Build("web", &rows)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestUnknownApplicationIsEmptyAndNotKept(t *testing.T) {
	s := newMemoryStore()
	s.own[""] = []Object{object("replicaSet shop/odd", nil)}
	r := NewReader(configOf(s))
	for _, name := range []string{"", "nothing", "WEB"} {
		if got := readApplication(t, r, name); len(got.ServerGroups) != 0 || got.Name != name || len(r.cache.entries) != 0 {
			t.Errorf("%q: got %s and %d kept, want nothing", name, describe(got.Application), len(r.cache.entries))
		}
	}
	if s.reads != 2 {
		t.Errorf("got %d reads, want one of each name but the empty one", s.reads)
	}
}

func TestErrorsAreNotKept(t *testing.T) {
	s := newMemoryStore()
	s.err = errors.New("the database is away")
	r := NewReader(configOf(s))
	if _, err := r.Application(t.Context(), "web"); !errors.Is(err, s.err) {
		t.Errorf("got %v, want %v", err, s.err)
	}
	s.change(func() { s.err = nil })
	if got := readApplication(t, r, "web"); len(got.ServerGroups) != 1 {
		t.Errorf("got %s, want a server group", describe(got.Application))
	}
}

// TestReadsAreShared checks that callers who come while an application is read wait for that
// read, unless it began before something changed that they may have written themselves.
func TestReadsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newMemoryStore()
		s.entered, s.proceed = make(chan struct{}), make(chan struct{})
		r := NewReader(configOf(s))
		results := make(chan int, 3)
		ask := func() { results <- len(readApplication(t, r, "web").ServerGroups) }
		go ask()
		<-s.entered
		go ask()
		synctest.Wait()
		s.proceed <- struct{}{}
		if a, b := <-results, <-results; a != 1 || b != 1 || s.reads != 4 {
			t.Errorf("got %d and %d server groups with %d reads, want 1 each with 4", a, b, s.reads)
		}
		s.change(func() { s.applications++ })
		go ask()
		<-s.entered
		s.change(func() {
			s.own["web"] = append(slices.Clone(s.own["web"]), object("replicaSet shop/web-2", nil))
			s.applications++
		})
		go ask() // it has written web-2
		synctest.Wait()
		s.proceed <- struct{}{}
		<-s.entered // the second one reads again
		s.proceed <- struct{}{}
		<-results
		if got := <-results; got != 2 {
			t.Errorf("got %d server groups after writing the second one, want 2", got)
		}
	})
}

func TestCallerCanLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newMemoryStore()
		s.entered, s.proceed = make(chan struct{}), make(chan struct{})
		r := NewReader(configOf(s))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, err := r.Application(ctx, "web")
			done <- err
		}()
		<-s.entered
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "web") {
			t.Errorf("got %v, want %v", err, context.Canceled)
		}
		s.proceed <- struct{}{}
		synctest.Wait()
		if r.cache.get("web") == nil {
			t.Error("the read of a caller who left was not kept")
		}
	})
}

// text is something that is derived from an application.
type text []byte

func (t text) Bytes() int64 { return int64(len(t)) }

func TestMemoryIsLimited(t *testing.T) {
	s := newMemoryStore()
	const limit = 64 << 10
	r := NewReader(Config{Store: s, Accounts: accountlist.NewCache(s), Bytes: limit})
	for i := range 200 {
		name := fmt.Sprint("app", i)
		s.own[name] = []Object{object("replicaSet shop/"+name, nil)}
		application := readApplication(t, r, name)
		for j := range 100 {
			answer, err := Derive(application, fmt.Sprint(j), func() (text, error) { return make(text, 100), nil })
			if err != nil || len(answer) != 100 {
				t.Fatalf("got %v and error %v, want an answer", answer, err)
			}
		}
		if len(application.derived) > maxDerived {
			t.Fatalf("got %d answers of one application, want at most %d", len(application.derived), maxDerived)
		}
		if r.cache.bytes > limit {
			t.Fatalf("got %d bytes, want at most %d", r.cache.bytes, limit)
		}
	}
	if n := len(r.cache.entries); n < 2 || n > 60 {
		t.Errorf("got %d applications in %d bytes, want some", n, limit)
	}
	if r.cache.get("app199") == nil || r.cache.get("app0") != nil {
		t.Error("the application that was used last was not kept, or the first one was")
	}
	var sum int64
	for _, e := range r.cache.entries {
		entry := e.Value.(*cacheEntry)
		sum += entry.bytes
		want := entry.application.rowBytes + int64(len(entry.application.Name)) + entryBytes + entry.application.derivedBytes
		if entry.bytes != want {
			t.Errorf("%s: got %d bytes, want %d", entry.application.Name, entry.bytes, want)
		}
	}
	if sum != r.cache.bytes {
		t.Errorf("got %d bytes, want the sum %d", r.cache.bytes, sum)
	}
}

func TestAnswerIsMadeOnce(t *testing.T) {
	r := NewReader(configOf(newMemoryStore()))
	application := readApplication(t, r, "web")
	made := 0
	encode := func() (text, error) { made++; return text{}, nil }
	for range 2 {
		if _, err := Derive(application, "a", encode); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Derive(application, "b", encode); err != nil || made != 2 {
		t.Errorf("got %d answers and error %v, want 2", made, err)
	}
	failure := errors.New("no")
	if _, err := Derive(application, "c", func() (text, error) { return nil, failure }); !errors.Is(err, failure) {
		t.Errorf("got %v, want %v", err, failure)
	}
}

// TestEqualAnswersAreMadeOnce asks for several answers at a time, each from many callers.
func TestEqualAnswersAreMadeOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewReader(configOf(newMemoryStore()))
		application := readApplication(t, r, "web")
		var making, made, most atomic.Int64
		var group sync.WaitGroup
		for i := range 100 {
			group.Go(func() {
				key := fmt.Sprint(i % 10)
				answer, err := Derive(application, key, func() (text, error) {
					most.Store(max(most.Load(), making.Add(1)))
					time.Sleep(time.Second)
					making.Add(-1)
					made.Add(1)
					return text(key), nil
				})
				if err != nil || string(answer) != key {
					t.Errorf("got %v and error %v, want the answer of %s", answer, err, key)
				}
			})
		}
		group.Wait()
		if made.Load() != 10 || most.Load() > maxDeriving {
			t.Errorf("made %d answers, %d at a time, want 10, at most %d at a time", made.Load(), most.Load(), maxDeriving)
		}
		if e := r.cache.entries["web"].Value.(*cacheEntry); e.bytes != application.rowBytes+3+entryBytes+application.derivedBytes {
			t.Errorf("got %d bytes, want each answer counted once", e.bytes)
		}
	})
}

func TestPanicOfOneAnswerIsTheCallers(t *testing.T) {
	r := NewReader(configOf(newMemoryStore()))
	application := readApplication(t, r, "web")
	for range 2 * maxDeriving {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("got no panic")
				}
			}()
			_, _ = Derive(application, "a", func() (text, error) { panic("broken") })
		}()
	}
	if _, err := Derive(application, "a", func() (text, error) { return text{}, nil }); err != nil {
		t.Error(err)
	}
}
