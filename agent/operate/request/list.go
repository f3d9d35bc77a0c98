package request

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/jsonstream"
)

const (
	// pageLimit is the number of objects in a page of a list.
	pageLimit = 500
	// maxTokenBytes limits a continue token. It has the name of an object.
	maxTokenBytes = 16 << 10
	// maxEmptyPages is how many pages without an object may follow each other.
	maxEmptyPages = 100
	// maxRestarts is how often a list begins again because its continue token has expired.
	maxRestarts = 5
)

// listBuffers are the read buffers of all lists.
var listBuffers jsonstream.BufferPool

// ListRequest returns the request for the objects of a collection that match selectors.
func (p Path) ListRequest(labels, fields string) Request {
	query := url.Values{"limit": {strconv.Itoa(pageLimit)}}
	if labels != "" {
		query.Set("labelSelector", labels)
	}
	if fields != "" {
		query.Set("fieldSelector", fields)
	}
	accept := ContentTypeJSON
	if p.IsSecret() {
		accept = acceptMetadataList
	}
	return Request{Query: query, Accept: accept}
}

// ListMetaRequest is ListRequest for the metadata only. The annotations of Secrets may have their data.
func (p Path) ListMetaRequest(labels, fields string) Request {
	req := p.ListRequest(labels, fields)
	req.Accept, req.Sensitive = withFullObjectFallback(p, acceptMetadataList), p.IsSecret()
	return req
}

// Pages collects what is made of the objects of a list.
type Pages[T any] struct {
	Items      []T
	Drop       func([]T) // wipes what is dropped; nil for nothing to do
	page, from int       // of the page that is read, and where its items begin
}

// Begin drops the items of a page that is read again, or all if the list begins again.
func (l *Pages[T]) Begin(page int) error {
	if page > l.page {
		l.page, l.from = page, len(l.Items)
		return nil
	}
	if page == 0 {
		l.page, l.from = 0, 0
	}
	if l.Drop != nil {
		l.Drop(l.Items[l.from:])
	}
	clear(l.Items[l.from:])
	l.Items = l.Items[:l.from]
	return nil
}

// ForEachItem calls item for the objects of a collection, which lie in a buffer and are valid during the call. It calls
// begin before each page, which it may read again. If the continue token expires, it begins again with the
// first page.
func (s *Sender) ForEachItem(ctx context.Context, p Path, req Request, begin func(page int) error,
	item func(page int, raw []byte) error) error {
	emptyPages := 0
	restarts := 0
	release := s.TemporaryMemory()
	for page := 0; ; page++ {
		items := 0
		meta, err := s.ForEachOfPage(ctx, p, req, func() error { items = 0; return begin(page) },
			func(raw []byte) error { items++; return item(page, raw) })
		last := req.Query.Get("continue")
		if StatusCode(err) == http.StatusGone && last != "" {
			if restarts++; restarts > maxRestarts {
				return finalError{vedette.Errorf(vedette.Unavailable, "the cluster's list of %s does not end: its continue token has expired %d times", p.Kind,
					restarts)}
			}
			req.Query.Del("continue")
			page = -1
			release() // Begin drops what was read
			continue
		}
		if err != nil || meta.Continue == "" {
			return err
		}
		emptyPages++
		if items > 0 {
			emptyPages = 0
		}
		if meta.Continue == last || len(meta.Continue) > maxTokenBytes || emptyPages > maxEmptyPages {
			return finalError{vedette.Errorf(vedette.Unavailable, "the cluster's list of %s does not end: its continue token is repeated, has more than %d bytes, "+
				"or leads to more than %d pages without an object", p.Kind, maxTokenBytes, maxEmptyPages)}
		}
		req.Query.Set("continue", meta.Continue)
	}
}

// ForEachOfPage is ForEachItem for one page of a list, whose metadata it returns. It calls begin whenever it reads the page.
func (s *Sender) ForEachOfPage(ctx context.Context, p Path, req Request, begin func() error,
	item func(raw []byte) error) (meta jsonstream.ListMeta, err error) {
	req.Consume = func(body io.Reader) (err error) {
		if err := begin(); err != nil {
			return err
		}
		meta, err = s.splitList(ctx, body, p, req.Sensitive, item)
		return err
	}
	_, _, err = s.Do(ctx, p, req)
	return meta, err
}

const (
	// ListBuffer is the largest read buffer of a list that costs nothing more, in bytes. Most objects fit into a
	// quarter of it.
	ListBuffer = 128 << 10
	// listMemory is what reading a list takes, in bytes: the read buffer, the object that leaves, and the
	// compression while it is sent.
	listMemory = 4 * ListBuffer
	// maxListMemory is what it takes while it reads the largest object, of 16 MiB.
	maxListMemory = 36 << 20
)

// listPermit is the right to hold a large object of a list. It implements jsonstream.Permit.
type listPermit struct {
	sender *Sender
	ctx    context.Context // of the list
	used   int64           // besides listMemory
}

// Acquire implements jsonstream.Permit: the object that leaves takes as much as the buffer.
func (p *listPermit) Acquire(size int) error {
	more := min(2*int64(size), maxListMemory-listMemory) - p.used
	if err := p.sender.UseMemory(p.ctx, more); err != nil {
		return err
	}
	p.used += more
	return nil
}

// StartWait implements jsonstream.Permit.
func (p *listPermit) StartWait() (stop func()) { return func() {} }

// ObjectDone implements jsonstream.Permit: the large buffer is always given back.
func (p *listPermit) ObjectDone() (giveBack bool) { return true }

// Release implements jsonstream.Permit.
func (p *listPermit) Release(size int) {
	less := p.used
	if size > ListBuffer {
		less -= min(2*int64(size), maxListMemory-listMemory)
	}
	p.sender.control.Memory.Shrink(less)
	p.used -= less
}

// splitList calls item for each object of a list.
func (s *Sender) splitList(ctx context.Context, body io.Reader, p Path, sensitive bool,
	item func(raw []byte) error) (jsonstream.ListMeta, error) {
	if err := s.UseMemory(ctx, listMemory); err != nil {
		return jsonstream.ListMeta{}, err
	}
	defer s.control.Memory.Shrink(listMemory)
	splitter := jsonstream.NewSplitter(body, &listBuffers, jsonstream.Options{Wipe: sensitive, Permit: &listPermit{sender: s, ctx: ctx},
		FreeBuffer: ListBuffer})
	defer splitter.Close()
	var itemErr error
	meta, err := splitter.List(nil, func(raw []byte) error {
		if raw == nil {
			itemErr = tooLargeError(fmt.Sprintf("an object of the cluster's list of %s has more than %d MiB", p.Kind, maxResponseBytes>>20))
		} else {
			itemErr = item(raw)
		}
		return itemErr
	})
	switch {
	case itemErr != nil:
		return meta, itemErr
	case errors.Is(err, jsonstream.ErrNoVersion): // lists of some aggregated APIs have none
		return meta, nil
	case errors.Is(err, jsonstream.ErrMalformed):
		return meta, finalError{vedette.Errorf(vedette.Unavailable, "the cluster's list of %s is invalid: %w", p.Kind, err)}
	}
	return meta, err
}
