package fleet

import (
	"net/http"
	"sync/atomic"
)

type counts struct {
	lists, watches, gets, patches, bytes atomic.Int64
}

// Counts are what the clusters of a fleet were asked since the start.
type Counts struct {
	Lists   int64 // pages
	Watches int64 // begun
	Gets    int64 // of one object, of the version and of discovery
	Patches int64
	Bytes   int64 // of answers, before encryption
}

// Counts returns them.
func (f *Fleet) Counts() Counts {
	return Counts{f.counts.lists.Load(), f.counts.watches.Load(), f.counts.gets.Load(), f.counts.patches.Load(), f.counts.bytes.Load()}
}

// Minus returns what was asked since earlier.
func (c Counts) Minus(earlier Counts) Counts {
	return Counts{c.Lists - earlier.Lists, c.Watches - earlier.Watches, c.Gets - earlier.Gets, c.Patches - earlier.Patches, c.Bytes - earlier.Bytes}
}

// countingWriter counts the bytes of an answer.
type countingWriter struct {
	http.ResponseWriter
	bytes *atomic.Int64
}

// Write implements http.ResponseWriter.
func (c *countingWriter) Write(b []byte) (int, error) {
	n, err := c.ResponseWriter.Write(b)
	c.bytes.Add(int64(n))
	return n, err
}

// Unwrap lets http.ResponseController find the connection.
func (c *countingWriter) Unwrap() http.ResponseWriter { return c.ResponseWriter }
