package fleet

import (
	"net/http"
	"sync/atomic"
)

type counts struct {
	lists, metadataLists, watches, gets, patches, bytes atomic.Int64
}

// Counts are the numbers of requests to the clusters of a fleet since the start.
type Counts struct {
	Lists         int64 // pages of lists
	MetadataLists int64 // those of Lists that ask for metadata only, as registrations and verifications do
	Watches       int64 // started watches
	Gets          int64 // of one object, the version and discovery
	Patches       int64
	Bytes         int64 // of responses, before encryption
}

func (f *Fleet) Counts() Counts {
	c := &f.counts
	return Counts{Lists: c.lists.Load(), MetadataLists: c.metadataLists.Load(), Watches: c.watches.Load(), Gets: c.gets.Load(),
		Patches: c.patches.Load(), Bytes: c.bytes.Load()}
}

// Minus returns the difference to an earlier result.
func (c Counts) Minus(earlier Counts) Counts {
	return Counts{Lists: c.Lists - earlier.Lists, MetadataLists: c.MetadataLists - earlier.MetadataLists, Watches: c.Watches - earlier.Watches,
		Gets: c.Gets - earlier.Gets, Patches: c.Patches - earlier.Patches, Bytes: c.Bytes - earlier.Bytes}
}

// Plus returns the sum.
func (c Counts) Plus(other Counts) Counts { return c.Minus(Counts{}.Minus(other)) }

// ObjectLists returns the number of pages of lists of whole objects.
func (c Counts) ObjectLists() int64 { return c.Lists - c.MetadataLists }

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
