package infrastructure

import (
	"container/list"
	"sync"
)

// cache keeps the snapshots that were used last, within a limit of bytes.
type cache struct {
	limit int64

	mu      sync.Mutex
	entries map[string]*list.Element
	order   *list.List // of *cacheEntry, the one that was used last first
	bytes   int64
}

type cacheEntry struct {
	snapshot *Snapshot
	bytes    int64
}

func newCache(limit int64) cache {
	return cache{limit: limit, entries: map[string]*list.Element{}, order: list.New()}
}

// get returns the snapshot of an application, or nil.
func (c *cache) get(name string) *Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[name]
	if e == nil {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*cacheEntry).snapshot
}

// put replaces the snapshot of an application. One that is larger than the limit is not kept.
func (c *cache) put(s *Snapshot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.entries[s.Name]; e != nil {
		c.removeLocked(e)
	}
	entry := &cacheEntry{s, s.rowBytes + int64(len(s.Name)) + entryBytes}
	c.entries[s.Name] = c.order.PushFront(entry)
	c.bytes += entry.bytes
	c.evictLocked()
}

// entryBytes is about what an empty application takes.
const entryBytes = 1 << 10

// grow adds the bytes of an answer to a snapshot, if it is still kept.
func (c *cache) grow(s *Snapshot, bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[s.Name]
	if e == nil || e.Value.(*cacheEntry).snapshot != s {
		return
	}
	e.Value.(*cacheEntry).bytes += bytes
	c.bytes += bytes
	c.evictLocked()
}

func (c *cache) evictLocked() {
	for c.bytes > c.limit {
		c.removeLocked(c.order.Back())
	}
}

func (c *cache) removeLocked(e *list.Element) {
	entry := c.order.Remove(e).(*cacheEntry)
	delete(c.entries, entry.snapshot.Name)
	c.bytes -= entry.bytes
}
