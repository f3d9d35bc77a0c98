package outbox

import (
	"fmt"
	"testing"
)

// TestEmptyQueueKeepsNoMemory checks that a queue gives back what a snapshot needed, whether its
// changes were taken, dropped or replaced, and that it works afterwards.
func TestEmptyQueueKeepsNoMemory(t *testing.T) {
	for name, empty := range map[string]func(*queue){
		"taken": func(q *queue) {
			for q.take() != nil {
			}
		},
		"dropped":           func(q *queue) { q.clear() },
		"stored by another": func(q *queue) { q.resumeFrom("999") },
	} {
		t.Run(name, func(t *testing.T) {
			q := newQueue(&account{}, pods)
			for n := range 1000 {
				c := change(pods, Bulk, fmt.Sprint("object ", n), fmt.Sprint(n))
				q.put(&c)
			}
			empty(q)
			if cap(q.items) > maxKeptItems || len(q.keys) != 0 || q.used.total() != 0 {
				t.Errorf("got room for %d changes, %d keys and %d bytes, want none", cap(q.items), len(q.keys), q.used.total())
			}
			for _, c := range []Change{change(pods, Live, "x", "1"), change(pods, Live, "y", "2"), change(pods, Live, "x", "3")} {
				q.put(&c)
			}
			if got := records([]Change{*q.take(), *q.take()}); got != "y@2 x@3" || q.peek() != nil {
				t.Errorf("got %q, then %v", got, q.peek())
			}
		})
	}
}
