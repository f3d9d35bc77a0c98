package agent

import (
	"context"
	"slices"
	"sync"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/uplink"
)

// index is what the server holds of a feed, as digests, while a snapshot of the
// feed is under way. It is the one thing whose size follows the number of
// objects: 8 bytes and a bit each, of the feeds that are listed at the moment.
type index struct {
	ready   chan struct{} // closed when the last piece is there
	digests []uint64      // sorted once ready
	seen    []uint64      // a bit for each digest
}

// prepare readies the index for look-ups.
func (x *index) prepare() {
	slices.Sort(x.digests)
	x.digests = slices.Compact(x.digests)
	x.seen = make([]uint64, (len(x.digests)+63)/64)
}

// has reports whether the server holds an object with this digest, and notes
// that the cluster does.
func (x *index) has(digest uint64) bool {
	i, found := slices.BinarySearch(x.digests, digest)
	if found {
		x.seen[i/64] |= 1 << (i % 64)
	}
	return found
}

// forEachUnseen calls yield with the digests that the cluster has no object of, in
// pieces of at most n.
func (x *index) forEachUnseen(n int, yield func([]uint64) error) error {
	var unseen []uint64
	for i, digest := range x.digests {
		if x.seen[i/64]&(1<<(i%64)) != 0 {
			continue
		}
		if unseen = append(unseen, digest); len(unseen) == n {
			if err := yield(unseen); err != nil {
				return err
			}
			unseen = nil
		}
	}
	if len(unseen) == 0 {
		return nil
	}
	return yield(unseen)
}

// indexes gathers the indexes of an account's feeds as they arrive.
type indexes struct {
	mu     sync.Mutex
	byFeed map[vedette.Feed]*index
}

// expect makes room for a feed's index, in place of one that was not finished.
func (xs *indexes) expect(feed vedette.Feed) *index {
	xs.mu.Lock()
	defer xs.mu.Unlock()
	if xs.byFeed == nil {
		xs.byFeed = map[vedette.Feed]*index{}
	}
	x := &index{ready: make(chan struct{})}
	xs.byFeed[feed] = x
	return x
}

func (xs *indexes) add(piece uplink.Index) {
	xs.mu.Lock()
	defer xs.mu.Unlock()
	x := xs.byFeed[piece.Feed]
	if x == nil {
		return
	}
	x.digests = append(x.digests, piece.Digests...)
	if piece.Last {
		delete(xs.byFeed, piece.Feed)
		close(x.ready)
	}
}

// wait waits until the whole index is there.
func (x *index) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-x.ready:
		x.prepare()
		return nil
	}
}
