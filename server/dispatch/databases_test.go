package dispatch

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/vedette-io/vedette/server/store/history"
)

// hangingStore is a store whose calls return when the test lets them.
type hangingStore struct{ answer chan struct{} }

func (h hangingStore) EndOperations(context.Context, []history.Operation) error {
	<-h.answer
	return nil
}

// TestDatabaseThatHangsKeepsNoOtherWaiting writes to two databases, one of which hangs.
func TestDatabaseThatHangsKeepsNoOtherWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs, answers := hangingStore{make(chan struct{})}, hangingStore{make(chan struct{})}
		close(answers.answer)
		var d endsByDatabase
		events := make(chan string, 10)
		start := func(store hangingStore, name string) {
			d.start(store, func() { _ = store.EndOperations(t.Context(), nil); events <- name + " is written" },
				func() { events <- name + " wakes" }, func() { events <- name + " waits" })
		}
		start(hangs, "one")
		start(answers, "two")
		start(hangs, "three")
		synctest.Wait()
		got := map[string]bool{}
		for len(events) > 0 {
			got[<-events] = true
		}
		if len(got) != 3 || !got["two is written"] || !got["two wakes"] || !got["three waits"] {
			t.Errorf("while one database hangs: got %v, want that the other is written, and that the first waits", got)
		}
		close(hangs.answer)
		synctest.Wait()
		if first, second := <-events, <-events; first != "one is written" || second != "one wakes" {
			t.Errorf("when it answers: got %s, %s", first, second)
		}
		start(hangs, "three")
		d.writing.Wait()
		if first := <-events; first != "three is written" {
			t.Errorf("got %s, want what has waited to be written", first)
		}
	})
}
