package fleet

import (
	"net/http"
	"sync/atomic"
)

type counts struct {
	lists, watches, gets, patches, bytes atomic.Int64
}

// Counts are the numbers of requests to the clusters of a fleet since the start.
type Counts struct {
	Lists   int64 // pages of lists
	Watches int64 // started watches
	Gets    int64 // of one object, the version and discovery
	Patches int64
	Bytes   int64 // of responses, before encryption
}

func (f *Fleet) Counts() Counts {
	return Counts{f.counts.lists.Load(), f.counts.watches.Load(), f.counts.gets.Load(), f.counts.patches.Load(), f.counts.bytes.Load()}
}

// Minus returns the difference to an earlier result.
func (c Counts) Minus(earlier Counts) Counts {
	return Counts{c.Lists - earlier.Lists, c.Watches - earlier.Watches, c.Gets - earlier.Gets, c.Patches - earlier.Patches,
		c.Bytes - earlier.Bytes}
}

// countingWriter counts the bytes of a response.
type countingWriter struct {
	http.ResponseWriter
	bytes *atomic.Int64
}

func (c *countingWriter) Write(b []byte) (int, error) {
	n, err := c.ResponseWriter.Write(b)
	c.bytes.Add(int64(n))
	return n, err
}

// Unwrap is called by http.ResponseController.
func (c *countingWriter) Unwrap() http.ResponseWriter { return c.ResponseWriter }
