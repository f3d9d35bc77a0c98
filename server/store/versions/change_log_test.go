package versions

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

func named(from, n int) []ChangedObject {
	var list []ChangedObject
	for i := from; i < from+n; i++ {
		list = append(list, ChangedObject{Name: fmt.Sprint(i)})
	}
	return list
}

// TestChangeLogEqualsAllChanges compares the log with a list of all changes, over several rounds of the ring.
func TestChangeLogEqualsAllChanges(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // not secret
	var log changeLog
	type reader struct {
		mark  uint64
		seen  int // number of changes before the mark
		since int // number of times that the log had been emptied
	}
	readers := []reader{{}}
	var all []ChangedObject
	added, emptied := 0, 0
	for range 100 {
		switch n := random.IntN(10); n {
		case 0:
			log.forget()
			emptied++
		case 1:
			readers = append(readers, reader{log.now(), added, emptied})
		default:
			n := random.IntN(changeLogSize / 8)
			all = append(all, named(added, n)...)
			log.note(all[added:])
			added += n
		}
		for _, r := range readers {
			got, wrong := 0, 0
			now, ok := log.Since(r.mark, func(c ChangedObject) {
				if at := r.seen + got; at >= len(all) || c != all[at] {
					wrong++
				}
				got++
			})
			known := r.since == emptied && added-r.seen <= changeLogSize
			if now != log.now() || ok != known || known && (got != added-r.seen || wrong > 0) {
				t.Fatalf("got %d changes, %d of them wrong, known: %v, want %d and %v", got, wrong, ok, added-r.seen, known)
			}
		}
	}
}
