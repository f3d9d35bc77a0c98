package watch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/jsonstream"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/watch/lifecycle"
)

// errNoWatchList reports that the API server cannot begin a watch with a snapshot.
var errNoWatchList = errors.New("the API server does not stream snapshots; using lists from now on")

// defaultPageSize is how many objects a list requests at a time.
const defaultPageSize = 500

// maxPageSize bounds how far pages grow after a continue token expired.
const maxPageSize = 16 * defaultPageSize

// errYield interrupts a snapshot of an API server that is silent while other accounts wait.
var errYield = errors.New("other accounts list their objects first")

// retryYielded reads a snapshot, and again if it had to yield. The second time its account counts as slow,
// waits until no others do, and does not yield.
func retryYielded(ctx context.Context, read func(ctx context.Context, yield func()) error) error {
	for {
		attempt, cancel := context.WithCancelCause(ctx)
		err := read(attempt, func() { cancel(errYield) })
		yielded := err != nil && errors.Is(context.Cause(attempt), errYield)
		cancel(nil)
		if !yielded {
			return err
		}
	}
}

// list reads all objects, and ends the snapshot. From then on it does not yield any more: a snapshot that the sink has taken must not be
// read again.
func (f *feed) list(ctx context.Context) error {
	var mark vedette.Mark
	var requested time.Time
	err := retryYielded(ctx, func(ctx context.Context, yield func()) (err error) {
		mark, requested, err = f.readSnapshot(ctx, yield)
		return err
	})
	if err != nil {
		return err
	}
	if err := f.handle(ctx, lifecycle.Listed{Mark: mark}); err != nil {
		return err
	}
	f.evidence.Listed(requested)
	return nil
}

// readSnapshot reads all objects, and returns the mark of the list and when it was requested. It holds its permit
// only while it reads, not during a pause between attempts.
func (f *feed) readSnapshot(ctx context.Context, yield func()) (mark vedette.Mark, requested time.Time, err error) {
	f.step(lifecycle.ListRestarted{}) // if it had to yield
	f.permit, err = f.w.acquireSnapshotPermit(ctx, yield)
	defer func() {
		f.permit.release(err == nil)
		f.permit = nil // a feed lives for long after its snapshot
	}()
	if err != nil {
		return "", time.Time{}, err
	}
	f.listing.Store(true)
	defer f.listing.Store(false)
	requested = time.Now()
	mark, err = f.readObjects(ctx)
	return mark, requested, err
}

// readObjects reads all objects as a stream if configured and supported, and otherwise as pages. Measured with 12,000
// ConfigMaps of 5 KB and an API server on the same two cores:
//
//	a bare paged list into memory             1.58 s, 156 MB allocated by the reader
//	pages of 500, split and passed on         1.19 s, 2.4 MB
//	a stream, split and passed on             1.67 s, 1.7 MB
//
// The stream needs less memory in API servers that build large lists, and it has no limit of 60 seconds, so it stays
// available.
func (f *feed) readObjects(ctx context.Context) (vedette.Mark, error) {
	if _, unsupported := f.w.noWatchList.Load(f.Kind.Group); unsupported || !f.w.cfg.StreamSnapshots {
		return f.readList(ctx)
	}
	mark, err := f.readWatchList(ctx)
	if !errors.Is(err, errNoWatchList) {
		return mark, err
	}
	f.step(lifecycle.ListRestarted{}) // discard what the stream sent
	return f.readList(ctx)
}

// readList reads page by page. If a continue token expires, the pages no longer show the
// same state. The API server offers to continue anyway, but then both the list and the
// watch would miss what changed on earlier pages. So the list begins again, with larger
// pages, which take fewer requests.
func (f *feed) readList(ctx context.Context) (vedette.Mark, error) {
	first, err := f.readPageRetrying(ctx, "")
	for next := first.Continue; err == nil && next != ""; {
		var p jsonstream.ListMeta
		p, err = f.readPageRetrying(ctx, next)
		if err == nil && p.Continue == next {
			err = kube.ErrSamePage
		}
		next = p.Continue
	}
	if status, ok := errors.AsType[*kube.StatusError](err); ok && status.Code == http.StatusGone {
		f.pageSize = min(2*f.pageSize, maxPageSize)
		return "", fmt.Errorf("%w: %w", errExpired, err)
	}
	return vedette.Mark(first.Version), err
}

// readPageRetrying reads one page. If the response breaks off, it requests the page
// again, smaller each time, because an API server ends every list after a minute, and a
// slow sink must not prevent a snapshot from ever completing. So objects can come twice. A
// retried later page has the same version, which its token determines. A retried first page
// has another version, so the snapshot begins again.
func (f *feed) readPageRetrying(ctx context.Context, next string) (jsonstream.ListMeta, error) {
	size := f.pageSize
	for {
		p, err := f.readPage(ctx, next, size)
		if err == nil || kube.StatusCode(err) != 0 || ctx.Err() != nil || size <= defaultPageSize/16 || !kube.IsInterrupted(err) {
			return p, err
		}
		size /= 4
		if next == "" {
			f.step(lifecycle.ListRestarted{})
		}
	}
}

func (f *feed) readPage(ctx context.Context, next string, size int) (jsonstream.ListMeta, error) {
	q := f.query()
	q.Set("limit", strconv.Itoa(size))
	if next != "" {
		q.Set("continue", next)
	}
	l := f.w.c.Timeouts()
	l.Waiter = f.permit
	f.permit.startPage()
	resp, err := f.get(ctx, l, kube.GetRequest{Path: f.ListPath(), Query: q, Accept: f.acceptHeader(kube.AcceptMetadataList)})
	if err != nil {
		return jsonstream.ListMeta{}, err
	}
	defer resp.Body.Close()
	if err := f.handle(ctx, lifecycle.ListAccepted{}); err != nil {
		return jsonstream.ListMeta{}, err
	}
	s := f.newSplitter(ctx, resp.Body)
	defer s.Close()
	return s.List(f.typeMeta, func(raw []byte) error {
		return f.handleObject(ctx, Item, s, raw)
	})
}

func (f *feed) acceptHeader(metadata string) string {
	if f.metadataOnly {
		return metadata
	}
	return kube.AcceptJSON
}

func (f *feed) newSplitter(ctx context.Context, body io.Reader) *jsonstream.Splitter {
	return f.newPermittedSplitter(ctx, body, f.permit)
}

// newPermittedSplitter returns a splitter that waits for the API server with a permit, which may be nil.
func (f *feed) newPermittedSplitter(ctx context.Context, body io.Reader, snapshot *snapshotPermit) *jsonstream.Splitter {
	return f.newSplitterOf(body, f.newReadPermit(ctx, body, snapshot))
}

func (f *feed) newSplitterOf(r io.Reader, permit *readPermit) *jsonstream.Splitter {
	return jsonstream.NewSplitter(r, &f.w.cfg.Limiter.buffers, jsonstream.Options{Wipe: f.Kind == secretKind, Permit: permit})
}

// readWatchList reads a watch that begins with all objects and marks their end with a
// bookmark.
func (f *feed) readWatchList(ctx context.Context) (vedette.Mark, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	q := f.query()
	q.Set("watch", "true")
	q.Set("sendInitialEvents", "true")
	q.Set("resourceVersionMatch", "NotOlderThan")
	q.Set("allowWatchBookmarks", "true")
	q.Set("timeoutSeconds", strconv.Itoa(int(f.w.cfg.MaxWatchTimeout/time.Second)))
	// This timeout must be longer than StreamIdleTimeout, which falls back to lists.
	l := kube.Timeouts{Header: f.w.c.Timeouts().Header, Progress: 2 * f.w.cfg.StreamIdleTimeout, Waiter: f.permit}
	resp, err := f.get(ctx, l, kube.GetRequest{Path: f.ListPath(), Query: q, Accept: f.acceptHeader(kube.AcceptMetadata)})
	if err != nil {
		return "", f.noteNoWatchList(err)
	}
	defer resp.Body.Close()
	if err := f.handle(ctx, lifecycle.ListAccepted{}); err != nil {
		return "", err
	}
	idleTimer := time.AfterFunc(f.w.cfg.StreamIdleTimeout, func() { cancel(errNoWatchList) })
	defer idleTimer.Stop()
	s := f.newSplitter(ctx, resp.Body)
	defer s.Close()
	for {
		mark, err := f.handleInitialEvent(ctx, s, idleTimer)
		if errors.Is(context.Cause(ctx), errNoWatchList) {
			err = errNoWatchList
		}
		if mark != "" || err != nil {
			return mark, f.noteNoWatchList(err)
		}
	}
}

// handleInitialEvent handles one message of a streamed snapshot. It returns the mark after
// the last object.
func (f *feed) handleInitialEvent(ctx context.Context, s *jsonstream.Splitter, idleTimer *time.Timer) (vedette.Mark, error) {
	fr, err := s.Frame()
	idleTimer.Stop()
	defer idleTimer.Reset(f.w.cfg.StreamIdleTimeout)
	switch {
	case errors.Is(err, jsonstream.ErrTooLarge):
		return "", f.handleObject(ctx, Item, s, nil)
	case err == io.EOF:
		return "", io.ErrUnexpectedEOF
	case err != nil:
		return "", err
	}
	switch fr.Type {
	case "ADDED", "MODIFIED":
		return "", f.handleObject(ctx, Item, s, fr.Object)
	case "DELETED":
		return "", f.handleObject(ctx, Delete, s, fr.Object)
	case "ERROR":
		return "", kube.ParseStatus(fr.Object)
	case "BOOKMARK":
		m, err := jsonstream.ReadMeta(fr.Object)
		if err == nil && !m.EndsInitialEvents {
			err = errNoWatchList // an older API server started a plain watch
		}
		return vedette.Mark(m.Version), err
	}
	return "", errUnknownFrame(fr)
}

// noteNoWatchList remembers if an API group does not stream snapshots.
func (f *feed) noteNoWatchList(err error) error {
	switch code := kube.StatusCode(err); {
	case errors.Is(err, errNoWatchList), code == http.StatusBadRequest, code == http.StatusUnprocessableEntity,
		code == http.StatusForbidden && strings.Contains(err.Error(), "sendInitialEvents"):
		f.w.noWatchList.Store(f.Kind.Group, true)
		return errNoWatchList
	}
	return err
}

// typeMetaOf returns what the items of a list lack: an opening brace, kind,
// apiVersion and a comma.
func typeMetaOf(r vedette.Resource) []byte {
	return fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,`, r.Kind.Name, r.APIVersion())
}

func errUnknownFrame(fr jsonstream.Frame) error {
	return fmt.Errorf("%w: a watch event of type %.20q", jsonstream.ErrMalformed, fr.Type)
}
