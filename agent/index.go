package agent

import (
	"context"
	"slices"
	"sync"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/uplink"
)

// index holds the digests of a feed's objects at the server, during a snapshot of the feed.
// It is the only data whose size grows with the number of objects: 8 bytes and one bit per
// object of the feeds that are being listed.
// docs/decisions/0001 says why snapshots compare digests.
type index struct {
	ready   chan struct{} // closed when the last piece has arrived
	digests []uint64      // sorted once ready
	seen    []uint64      // a bit for each digest
}

// prepare sorts the index for lookups.
func (x *index) prepare() {
	slices.Sort(x.digests)
	x.digests = slices.Compact(x.digests)
	x.seen = make([]uint64, (len(x.digests)+63)/64)
}

// has reports whether the server has an object, and marks it as seen in the cluster. An older
// server may have another object with the digest of an object without uid. That digest is only
// marked as seen: if it were dropped, the server would remove the object that it has just got.
func (x *index) has(namespace, name, uid, resourceVersion string) bool {
	if x.see(vedette.Digest(namespace, name, uid, resourceVersion)) {
		return true
	}
	if uid == "" {
		x.see(vedette.DigestWithoutName(uid, resourceVersion))
	}
	return false
}

// see reports whether the index has a digest, and marks it as seen.
func (x *index) see(digest uint64) bool {
	i, found := slices.BinarySearch(x.digests, digest)
	if found {
		x.seen[i/64] |= 1 << (i % 64)
	}
	return found
}

// forEachUnseen calls yield with the digests that were not seen in the cluster, in pieces of
// at most n.
func (x *index) forEachUnseen(n int, yield func([]uint64) error) error {
	var unseen []uint64
	for i, digest := range x.digests {
		if x.seen[i/64]&(1<<(i%64)) != 0 {
			continue
		}
		unseen = append(unseen, digest)
		if len(unseen) == n {
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

// indexes collects the indexes of an account's feeds as they arrive.
type indexes struct {
	mu     sync.Mutex
	byFeed map[vedette.Feed]*index
}

// expect prepares for a feed's index. It replaces an unfinished one.
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

// wait waits until the whole index has arrived.
func (x *index) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-x.ready:
		x.prepare()
		return nil
	}
}
