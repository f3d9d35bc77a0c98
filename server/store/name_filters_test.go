package store

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/vedette-io/vedette"
)

func (w *fixture) searchPods(text string) []SearchRow {
	w.t.Helper()
	rows, err := w.Search(context.Background(), SearchQuery{Text: text, KeyPrefix: "cache:", KindName: nameOfAnyKind, Limit: 5000})
	w.must(err)
	return rows
}

// TestStatementsOfSearch checks that a search asks the database only about accounts that may have
// what is searched for, and finds what was written after the filters were built.
func TestStatementsOfSearch(t *testing.T) {
	w := newFixture(t)
	w.commit(1, podsAt(0, 20, 1)...)
	w.must(w.BuildNameFilters(t.Context()))
	counting := countQueries(w)
	expect := func(text string, found int, statements int64) {
		t.Helper()
		before := counting.queries.Load()
		rows := w.searchPods(text)
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
	w.commit(2, podAt(77, 1))
	expect("pod-77", 1, 1)
	w.writeThrough(podAt(88, 3))
	expect("pod-88", 1, 1)
	expect("p*8", 3, 1)
	expect("shop:pod-77", 1, 1)
	expect("shop:none", 0, 1)
}

// TestFiltersMissNothing searches for each of the Pods that are committed while filters are built
// again and again.
func TestFiltersMissNothing(t *testing.T) {
	w := newFixture(t)
	var writer sync.WaitGroup
	defer writer.Wait()
	done := make(chan struct{})
	writer.Go(func() {
		defer close(done)
		for i := range 100 {
			w.commit(i+1, podAt(i, 1))
		}
	})
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		w.nameFilters.forgetExcept(func(int64) bool { return false })
		w.must(w.BuildNameFilters(t.Context()))
	}
	for i := range 100 {
		want := fmt.Sprintf("pod-%d", i)
		if !slices.ContainsFunc(w.searchPods(want), func(r SearchRow) bool { return r.Name == want }) {
			t.Errorf("%s is not found", want)
		}
	}
}

// TestFilterWaitsForWriters checks that a filter is not used that may lack the names of a writer:
// one that began before the filter, and one of which nobody knows whether it has ended.
func TestFilterWaitsForWriters(t *testing.T) {
	w := newFixture(t)
	w.locks.MarkUncertain("prod")
	w.must(w.BuildNameFilters(t.Context()))
	if len(w.nameFilters.ready)+len(w.nameFilters.next) > 0 {
		t.Error("a filter was built although a transaction may not have ended")
	}
	w.locks.ClearUncertain("prod")
	unlock, err := w.locks.Lock(t.Context(), "prod")
	w.must(err)
	ctx, cancel := context.WithCancel(t.Context())
	built := make(chan error)
	go func() { built <- w.BuildNameFilters(ctx) }()
	for waiting := false; !waiting; {
		w.nameFilters.mu.RLock()
		waiting = len(w.nameFilters.next) == 1
		w.nameFilters.mu.RUnlock()
	}
	cancel()
	if err := <-built; err == nil || len(w.nameFilters.ready)+len(w.nameFilters.next) > 0 {
		t.Errorf("got %v and %d filters while a writer has the account, want an error and none", err, len(w.nameFilters.ready))
	}
	unlock()
	w.must(w.BuildNameFilters(t.Context()))
	if len(w.nameFilters.ready) != 1 {
		t.Error("no filter was built in the end")
	}
}

// TestUpdatesDoNotWearFilters checks that only new names count, and that a worn filter is replaced
// by one without the names that are gone.
func TestUpdatesDoNotWearFilters(t *testing.T) {
	w := newFixture(t)
	w.commit(1, podsAt(0, 10, 1)...)
	w.must(w.BuildNameFilters(t.Context()))
	account, err := w.Account(t.Context(), "prod")
	w.must(err)
	for version := 2; version < 30; version++ {
		w.commit(version, podsAt(0, 10, version)...)
	}
	names, err := w.accountNames(t.Context())
	w.must(err)
	var id int64
	for id = range names.visible {
	}
	if w.nameFilters.needsBuilding(id) {
		t.Errorf("account %s: the filter is worn by updates", account.Name)
	}
	w.commit(30, podsAt(1000, 200, 30)...)
	w.delete(1000, 200)
	if !w.nameFilters.needsBuilding(id) {
		t.Error("the filter is not worn by 200 new names")
	}
	w.must(w.BuildNameFilters(t.Context()))
	counting := countQueries(w)
	if rows := w.searchPods("pod-1150"); len(rows) > 0 || counting.queries.Load() > 0 {
		t.Errorf("a name that is gone: got %d rows and %d statements, want none", len(rows), counting.queries.Load())
	}
}

func (w *fixture) delete(from, n int) {
	b := Batch{Account: "prod", Term: w.term}
	for _, pod := range podsAt(from, n, 1) {
		b.Deletes = append(b.Deletes, Deletion{Key: pod.Key})
	}
	_, err := w.Commit(context.Background(), b)
	w.must(err)
}

// TestFiltersFollowAccounts checks that a retired account keeps its filter, and a removed one does
// not.
func TestFiltersFollowAccounts(t *testing.T) {
	w := newFixture(t)
	w.commit(1, podAt(1, 1))
	expect := func(what string, filters, found int) {
		t.Helper()
		w.must(w.BuildNameFilters(t.Context()))
		if got := len(w.searchPods("pod-1")); len(w.nameFilters.ready) != filters || got != found {
			t.Errorf("%s: got %d filters and %d Pods, want %d and %d", what, len(w.nameFilters.ready), got, filters, found)
		}
	}
	expect("at first", 1, 1)
	_, err := w.RetireAccount(t.Context(), "prod")
	w.must(err)
	expect("retired", 1, 0)
	_, err = w.Register(t.Context(), vedette.Account{Name: "prod", Cluster: vedette.Cluster{UID: "u"}})
	w.must(err)
	expect("restored", 1, 1)
	w.must(w.RemoveAccount(t.Context(), "prod"))
	expect("removed", 0, 0)
}

// TestFiltersAreKept checks that RunNameFilters builds filters at once, and ends with its context.
func TestFiltersAreKept(t *testing.T) {
	w := newFixture(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- w.RunNameFilters(ctx) }()
	for built := false; !built; {
		w.nameFilters.mu.RLock()
		built = len(w.nameFilters.ready) == 1
		w.nameFilters.mu.RUnlock()
	}
	cancel()
	w.must(<-ended)
}

// TestOnlyTheWriterHasFilters checks that a process without the lease of a shared database builds
// none: it does not see what others write.
func TestOnlyTheWriterHasFilters(t *testing.T) {
	w := newFixture(t)
	w.dialect.clockExpr = "0" // as of a database that others can write
	w.commit(1, podAt(1, 1))
	w.must(w.BuildNameFilters(t.Context()))
	if len(w.nameFilters.ready) > 0 || len(w.searchPods("pod-1")) != 1 {
		t.Errorf("got %d filters, want none", len(w.nameFilters.ready))
	}
}
