package read_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/test/databases"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/storetest"
)

func (f *fixture) searchPods(text string) []read.SearchRow {
	f.T.Helper()
	rows, err := f.Search(context.Background(), read.SearchQuery{Text: text, KeyPrefix: "cache:", KindName: nameOfAnyKind, Limit: 5000})
	f.Must(err)
	return rows
}

// TestStatementsOfSearch checks that a search asks the database only about accounts that may have
// what is searched for, and finds what was written after the filters were built.
func TestStatementsOfSearch(t *testing.T) {
	f := newFixture(t)
	f.CommitPods(1, storetest.PodsAt(0, 20, 1)...)
	f.Must(f.BuildNameFilters(t.Context()))
	counting := countQueries(f)
	expect := func(text string, found int, statements int64) {
		t.Helper()
		before := counting.queries.Load()
		rows := f.searchPods(text)
		if got := counting.queries.Load() - before; len(rows) != found || got != statements {
			t.Errorf("%q: got %d rows by %d statements, want %d by %d", text, len(rows), got, found, statements)
		}
	}
	expect("pod-1", 11, 1)
	expect("nowhere", 0, 0)
	expect("prod", 20, 1) // the name of the account
	expect("cache", 20, 1)
	expect("hop", 20, 1) // the namespace
	expect("pod-77", 0, 0)
	f.CommitPods(2, storetest.PodAt(77, 1))
	expect("pod-77", 1, 1)
	f.WritePodThrough(storetest.PodAt(88, 3))
	expect("pod-88", 1, 1)
	expect("p*8", 3, 1)
	expect("shop:pod-77", 1, 1)
	expect("shop:none", 0, 1)
}

// TestFiltersMissNothing searches for each of the Pods that are committed while filters are built
// again and again.
func TestFiltersMissNothing(t *testing.T) {
	f := newFixture(t)
	var writer sync.WaitGroup
	defer writer.Wait()
	done := make(chan struct{})
	writer.Go(func() {
		defer close(done)
		for i := range 100 {
			f.CommitPods(i+1, storetest.PodAt(i, 1))
		}
	})
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		f.NameFilters().ForgetExcept(func(int64) bool { return false })
		f.Must(f.BuildNameFilters(t.Context()))
	}
	for i := range 100 {
		want := fmt.Sprintf("pod-%d", i)
		if !slices.ContainsFunc(f.searchPods(want), func(r read.SearchRow) bool { return r.Name == want }) {
			t.Errorf("%s is not found", want)
		}
	}
}

// TestFilterWaitsForWriters checks that a filter is not used that may lack the names of a writer:
// one that began before the filter, and one of which nobody knows whether it has ended.
func TestFilterWaitsForWriters(t *testing.T) {
	f := newFixture(t)
	f.Locks().MarkUncertain("prod")
	f.Must(f.BuildNameFilters(t.Context()))
	if f.filters() > 0 {
		t.Error("a filter was built although a transaction may not have ended")
	}
	f.Locks().ClearUncertain("prod")
	unlock, err := f.Locks().Lock(t.Context(), "prod")
	f.Must(err)
	ctx, cancel := context.WithCancel(t.Context())
	built := make(chan error)
	go func() { built <- f.BuildNameFilters(ctx) }()
	for waiting := false; !waiting; {
		waiting = f.filters() == 1
	}
	cancel()
	if err := <-built; err == nil || f.filters() > 0 {
		t.Errorf("got %v and %d filters while a writer has the account, want an error and none", err, f.filters())
	}
	unlock()
	f.Must(f.BuildNameFilters(t.Context()))
	if f.filters() != 1 {
		t.Error("no filter was built in the end")
	}
}

// TestUpdatesDoNotWearFilters checks that only new names count, and that a worn filter is replaced
// by one without the names that are gone.
func TestUpdatesDoNotWearFilters(t *testing.T) {
	f := newFixture(t)
	f.CommitPods(1, storetest.PodsAt(0, 10, 1)...)
	f.Must(f.BuildNameFilters(t.Context()))
	account, err := f.Account(t.Context(), "prod")
	f.Must(err)
	for version := 2; version < 30; version++ {
		f.CommitPods(version, storetest.PodsAt(0, 10, version)...)
	}
	id := f.id()
	if f.NameFilters().NeedsBuilding(id) {
		t.Errorf("account %s: the filter is worn by updates", account.Name)
	}
	f.CommitPods(30, storetest.PodsAt(1000, 200, 30)...)
	f.delete(1000, 200)
	if !f.NameFilters().NeedsBuilding(id) {
		t.Error("the filter is not worn by 200 new names")
	}
	f.Must(f.BuildNameFilters(t.Context()))
	counting := countQueries(f)
	if rows := f.searchPods("pod-1150"); len(rows) > 0 || counting.queries.Load() > 0 {
		t.Errorf("a name that is gone: got %d rows and %d statements, want none", len(rows), counting.queries.Load())
	}
}

// id returns the id of the account.
func (f *fixture) id() int64 {
	id, err := f.AccountID(context.Background(), "prod")
	f.Must(err)
	return id
}

// filters returns the number of filters of all accounts, with those that are being built.
func (f *fixture) filters() (n int) {
	for id := range int64(10) {
		n += len(f.NameFilters().Of(id))
	}
	return n
}

func (f *fixture) delete(from, n int) {
	b := commit.Batch{Account: "prod", Term: f.Term}
	for _, pod := range storetest.PodsAt(from, n, 1) {
		b.Deletes = append(b.Deletes, commit.Deletion{Key: pod.Key})
	}
	_, err := f.Commit(context.Background(), b)
	f.Must(err)
}

// TestFiltersFollowAccounts checks that a retired account keeps its filter, and a removed one does
// not.
func TestFiltersFollowAccounts(t *testing.T) {
	f := newFixture(t)
	f.CommitPods(1, storetest.PodAt(1, 1))
	expect := func(what string, filters, found int) {
		t.Helper()
		f.Must(f.BuildNameFilters(t.Context()))
		if got := len(f.searchPods("pod-1")); f.filters() != filters || got != found {
			t.Errorf("%s: got %d filters and %d Pods, want %d and %d", what, f.filters(), got, filters, found)
		}
	}
	expect("at first", 1, 1)
	_, err := f.RetireAccount(t.Context(), "prod")
	f.Must(err)
	expect("retired", 1, 0)
	_, err = f.Register(t.Context(), vedette.Account{Name: "prod", Cluster: vedette.Cluster{UID: "u"}})
	f.Must(err)
	expect("restored", 1, 1)
	f.Must(f.RemoveAccount(t.Context(), "prod"))
	expect("removed", 0, 0)
}

// TestFiltersAreKept checks that RunNameFilters builds filters at once if there was a search, and ends with its context.
func TestFiltersAreKept(t *testing.T) {
	f := newFixture(t)
	id := f.id()
	short, end := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer end()
	f.Must(f.RunNameFilters(short)) // it looks before it waits
	if !f.NameFilters().NeedsBuilding(id) {
		t.Error("a filter was built although nobody has searched")
	}
	f.searchPods("pod-1")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- f.RunNameFilters(ctx) }()
	for built := false; !built; {
		built = !f.NameFilters().NeedsBuilding(id)
	}
	cancel()
	f.Must(<-ended)
}

// TestOnlyTheWriterHasFilters checks that a process without the lease of a shared database builds
// none: it does not see what others write.
func TestOnlyTheWriterHasFilters(t *testing.T) {
	f := newFixtureWith(t, sqldb.Config{URL: databases.PostgreSQL(t)})
	f.CommitPods(1, storetest.PodAt(1, 1))
	f.Must(f.BuildNameFilters(t.Context()))
	if f.filters() > 0 || len(f.searchPods("pod-1")) != 1 {
		t.Errorf("got %d filters, want none", f.filters())
	}
}
