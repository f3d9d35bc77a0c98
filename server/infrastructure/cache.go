package infrastructure

import (
	"container/list"
	"sync"
)

// cache keeps the applications that were used last, within a limit of bytes.
type cache struct {
	limit int64

	mu      sync.Mutex
	entries map[string]*list.Element
	order   *list.List // of *cacheEntry, the one that was used last first
	bytes   int64
}

type cacheEntry struct {
	application *CachedApplication
	bytes       int64
}

func newCache(limit int64) cache {
	return cache{limit: limit, entries: map[string]*list.Element{}, order: list.New()}
}

// get returns the application of a name, or nil.
func (c *cache) get(name string) *CachedApplication {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[name]
	if e == nil {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*cacheEntry).application
}

// put keeps an application in place of an earlier state of it. One that is larger than the limit is not kept.
func (c *cache) put(s *CachedApplication) {
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

// grow adds the bytes of what was derived from an application to it, if it is still kept.
func (c *cache) grow(s *CachedApplication, bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[s.Name]
	if e == nil || e.Value.(*cacheEntry).application != s {
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
	delete(c.entries, entry.application.Name)
	c.bytes -= entry.bytes
}
