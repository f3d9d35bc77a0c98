package operate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/jsonstream"
)

const (
	// pageLimit is the number of objects in a page of a list.
	pageLimit = 500
	// maxBufferedList is up to how many bytes a list is kept until it is complete. A longer one is sent
	// while it is read.
	maxBufferedList = 512 << 10
	// maxTokenBytes limits a continue token. It has the name of an object.
	maxTokenBytes = 16 << 10
	// maxEmptyPages is how many pages without an object may follow each other.
	maxEmptyPages = 100
	// maxRestarts is how often a list begins again because its continue token has expired.
	maxRestarts = 5
)

// listBuffers are the read buffers of all lists.
var listBuffers jsonstream.BufferPool

// list returns all objects of a kind that match the selectors.
func (r *run) list(ctx context.Context, a vedette.ListArgs) result {
	p, err := r.resolveTarget(ctx, a.Target)
	if err != nil {
		return errorResult(err)
	}
	return r.listResult(ctx, p.collection(), a.LabelSelector, a.FieldSelector)
}

// listResult is the result of a verb that returns several objects. If they are many, they are read while the
// outcome is sent.
func (r *run) listResult(_ context.Context, p resourcePath, labels, fields string) result {
	ctx, cancel := context.WithDeadline(r.streamCtx, r.deadline())
	objects := newListedObjects(r, cancel, r.redactedObjects(ctx, p, labels, fields)) //nolint:contextcheck // it outlives the handler
	buffered, err := objects.buffer(ctx)                                              //nolint:contextcheck // it outlives the handler
	if err != nil {
		objects.Close()
		return errorResult(err)
	}
	res := result{Outcome: vedette.Outcome{Objects: buffered}}
	if objects.ended {
		objects.Close()
	} else {
		res.More = objects
	}
	return res
}

// errRestarted reports that a list begins again with its first object.
var errRestarted = errors.New("the list begins again")

// redactedObjects returns the objects of a collection as they may leave the agent. An object is valid until the next
// one. An error ends the sequence, but for errRestarted.
func (r *run) redactedObjects(ctx context.Context, p resourcePath, labels, fields string) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		var buf []byte
		pageOfLast, hasObjects := 0, false
		begin := func(page int) error {
			switch {
			case page == 0 && hasObjects:
				hasObjects = false
				if !yield(nil, errRestarted) {
					return errStopped
				}
			case page == pageOfLast && hasObjects:
				return finalError{vedette.Errorf(vedette.Unavailable, "the list of %s was interrupted while it was read: repeat it", p.Kind)}
			}
			return nil
		}
		err := r.forEachItem(ctx, p, r.listRequest(p, labels, fields), begin, func(page int, raw []byte) error {
			obj, out, err := r.operator.redactor.Load().Object(buf[:0], p.Resource, raw)
			if err != nil {
				return finalError{fmt.Errorf("redact a %s: %w", p.Kind, err)}
			}
			pageOfLast, hasObjects = page, true
			if buf = out; cap(buf) > 2*listBuffer {
				buf = nil // one large object must not occupy memory until the list ends
			}
			if !yield(obj.Body, nil) {
				return errStopped
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStopped) {
			yield(nil, err)
		}
	}
}

// errStopped reports that nobody reads a list any more.
var errStopped = finalError{errors.New("the list is not read any more")}

func (r *run) listRequest(p resourcePath, labels, fields string) request {
	query := url.Values{"limit": {strconv.Itoa(pageLimit)}}
	if labels != "" {
		query.Set("labelSelector", labels)
	}
	if fields != "" {
		query.Set("fieldSelector", fields)
	}
	accept := contentTypeJSON
	if p.isSecret() {
		accept = acceptMetadataList
	}
	return request{query: query, accept: accept}
}

// listedObjects reads a list object by object. It implements vedette.ObjectReader.
type listedObjects struct {
	run    *run
	cancel context.CancelFunc
	next   func() (json.RawMessage, error, bool)
	stop   func()
	ended  bool
}

func newListedObjects(r *run, cancel context.CancelFunc, all iter.Seq2[json.RawMessage, error]) *listedObjects {
	l := &listedObjects{run: r, cancel: cancel}
	l.next, l.stop = iter.Pull2(all)
	return l
}

// buffer reads the beginning of the list, or all of it if it is short.
func (l *listedObjects) buffer(ctx context.Context) ([]json.RawMessage, error) {
	var buffered []json.RawMessage
	for size := 0; size < maxBufferedList; {
		raw, err := l.Next()
		switch {
		case errors.Is(err, errRestarted):
			buffered, size = nil, 0
			continue
		case err == io.EOF:
			return buffered, nil
		case err != nil:
			return nil, err
		}
		if err := l.run.useMemory(ctx, 2*int64(len(raw))+64); err != nil {
			return nil, err
		}
		buffered, size = append(buffered, append(json.RawMessage(nil), raw...)), size+len(raw)
	}
	return buffered, nil
}

// Next implements vedette.ObjectReader.
func (l *listedObjects) Next() (json.RawMessage, error) {
	raw, err, ok := l.next()
	if !ok {
		l.ended = true
		return nil, io.EOF
	}
	return raw, err
}

// Failure implements vedette.ObjectReader.
func (l *listedObjects) Failure(err error) vedette.Outcome {
	if errors.Is(err, errRestarted) {
		err = &statusError{Status: http.StatusGone, Reason: "Expired",
			Message: "the list took so long that the cluster no longer has its version: repeat it, or request less with a namespace or a selector"}
	}
	return l.run.toOutcome(errorResult(err))
}

// Close implements vedette.ObjectReader.
func (l *listedObjects) Close() {
	l.stop()
	l.cancel()
}

// listedMeta is what a deletion needs to know of an object.
type listedMeta struct {
	namespace, name, uid string
	applied              bool // it has the last-applied annotation
}

// listMeta returns the metadata of the objects of a collection. It asks for metadata only.
func (r *run) listMeta(ctx context.Context, p resourcePath, labels, fields string) ([]listedMeta, error) {
	req := r.listRequest(p, labels, fields)
	req.accept, req.sensitive = withFullObjectFallback(p, acceptMetadataList), p.isSecret()
	var all pagesOf[listedMeta]
	err := r.forEachItem(ctx, p, req, all.begin, func(_ int, raw []byte) error {
		meta, err := parseListedMeta(raw)
		if err != nil {
			return finalError{err}
		}
		all.items = append(all.items, meta)
		return r.useMemory(ctx, int64(4*(len(meta.namespace)+len(meta.name)+len(meta.uid))+256)) // the keys of the outcome, too
	})
	return all.items, err
}

// pagesOf collects what is made of the objects of a list.
type pagesOf[T any] struct {
	items      []T
	page, from int // of the page that is read, and where its items begin
}

// begin drops the items of a page that is read again, or all if the list begins again.
func (l *pagesOf[T]) begin(page int) error {
	if page > l.page {
		l.page, l.from = page, len(l.items)
		return nil
	}
	if page == 0 {
		l.page, l.from = 0, 0
	}
	clear(l.items[l.from:])
	l.items = l.items[:l.from]
	return nil
}

// forEachItem calls item for the objects of a collection, which lie in a buffer and are valid during the call. It calls
// begin before each page, which it may read again. If the continue token expires, it begins again with the
// first page.
func (r *run) forEachItem(ctx context.Context, p resourcePath, req request, begin func(page int) error,
	item func(page int, raw []byte) error) error {
	emptyPages, restarts, release := 0, 0, r.temporaryMemory()
	for page := 0; ; page++ {
		var meta jsonstream.ListMeta
		items := 0
		req.consume = func(body io.Reader) (err error) {
			if err := begin(page); err != nil {
				return err
			}
			items = 0
			meta, err = r.splitList(ctx, body, p, req.sensitive, func(raw []byte) error { items++; return item(page, raw) })
			return err
		}
		_, _, err := r.do(ctx, p, req)
		last := req.query.Get("continue")
		if statusCode(err) == http.StatusGone && last != "" {
			if restarts++; restarts > maxRestarts {
				return finalError{vedette.Errorf(vedette.Unavailable, "the cluster's list of %s does not end: its continue token has expired %d times", p.Kind,
					restarts)}
			}
			req.query.Del("continue")
			page = -1
			release() // begin drops what was read
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
		req.query.Set("continue", meta.Continue)
	}
}

const (
	// listBuffer is the largest read buffer of a list that costs nothing more, in bytes. Most objects fit into a
	// quarter of it.
	listBuffer = 128 << 10
	// listMemory is what reading a list takes, in bytes: the read buffer, the object that leaves, and the
	// compression while it is sent.
	listMemory = 4 * listBuffer
	// maxListMemory is what it takes while it reads the largest object, of 16 MiB.
	maxListMemory = 36 << 20
)

// listPermit is the right to hold a large object of a list. It implements jsonstream.Permit.
type listPermit struct {
	run  *run
	ctx  context.Context // of the list
	used int64           // besides listMemory
}

// Acquire implements jsonstream.Permit: the object that leaves takes as much as the buffer.
func (p *listPermit) Acquire(size int) error {
	more := min(2*int64(size), maxListMemory-listMemory) - p.used
	if err := p.run.useMemory(p.ctx, more); err != nil {
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
	if size > listBuffer {
		less -= min(2*int64(size), maxListMemory-listMemory)
	}
	p.run.control.Memory.Shrink(less)
	p.used -= less
}

// splitList calls item for each object of a list.
func (r *run) splitList(ctx context.Context, body io.Reader, p resourcePath, sensitive bool,
	item func(raw []byte) error) (jsonstream.ListMeta, error) {
	if err := r.useMemory(ctx, listMemory); err != nil {
		return jsonstream.ListMeta{}, err
	}
	defer r.control.Memory.Shrink(listMemory)
	s := jsonstream.NewSplitter(body, &listBuffers, jsonstream.Options{Wipe: sensitive, Permit: &listPermit{run: r, ctx: ctx},
		FreeBuffer: listBuffer})
	defer s.Close()
	var itemErr error
	meta, err := s.List(nil, func(raw []byte) error {
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
