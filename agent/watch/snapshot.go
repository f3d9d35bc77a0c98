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
)

// errNoStream says that the API server can't begin a watch with a snapshot.
var errNoStream = errors.New("the API server does not stream snapshots; lists are used from now on")

// mostPage bounds how far pages grow after lists that expired.
const mostPage = 16 * pageLimit

// snapshot reads all objects and leaves the mark up to which they count. It
// waits for its turn first, and gives it back before any pause.
func (f *feed) snapshot(ctx context.Context) (err error) {
	if err := acquire(ctx, f.w.turns); err != nil {
		return err
	}
	defer func() { <-f.w.turns }()
	f.turn, err = f.w.takeTurn(ctx)
	defer func() { f.turn.end(err == nil) }()
	if err != nil {
		return err
	}
	f.note, f.begun = "", false
	mark, err := f.read(ctx)
	if err != nil {
		return err
	}
	if err := f.put(ctx, Event{Type: End, Mark: mark}); err != nil {
		return err
	}
	f.mark, f.progress = mark, true
	f.relists++
	return nil
}

// answered begins the snapshot once the API server lets us read, so that a feed
// that is refused again and again stays what it was said to be.
func (f *feed) answered(ctx context.Context) error {
	if f.begun {
		return nil
	}
	f.begun = true
	if err := f.tell(ctx, vedette.FeedSyncing, ""); err != nil {
		return err
	}
	return f.put(ctx, Event{Type: Begin})
}

// read reads all objects by the better way that there is.
func (f *feed) read(ctx context.Context) (vedette.Mark, error) {
	if _, not := f.w.streamless.Load(f.Kind.Group); not || !f.w.cfg.StreamSnapshots {
		return f.list(ctx)
	}
	mark, err := f.stream(ctx)
	if err != errNoStream {
		return mark, err
	}
	f.begun = false // what the stream told is void
	return f.list(ctx)
}

// list reads page by page. A token that expires means that the pages no longer
// fit together: the API server offers to go on regardless, but what changed
// meanwhile on earlier pages would be missed by list and watch alike. So it
// begins again, with bigger pages, which take fewer turns.
func (f *feed) list(ctx context.Context) (vedette.Mark, error) {
	first, err := f.page(ctx, "")
	for next := first.Continue; err == nil && next != ""; {
		var p page
		p, err = f.page(ctx, next)
		if err == nil && p.Continue == next {
			err = errSamePage
		}
		next = p.Continue
	}
	var status *statusError
	if errors.As(err, &status) && status.Code == http.StatusGone {
		f.limit = min(2*f.limit, mostPage)
		return "", fmt.Errorf("%w: %w", errExpired, err)
	}
	return first.Version, err
}

// page reads one page. One that breaks off is read again, smaller each time,
// because an API server ends every list after a minute, and a sink that is slow
// must not keep a snapshot from ever ending. So objects can come twice: those of
// a later page at the version that its token holds, and those of the first at
// another one, which makes what its first try told void.
func (f *feed) page(ctx context.Context, next string) (page, error) {
	limit := f.limit
	for {
		p, err := f.readPage(ctx, next, limit)
		if err == nil || codeOf(err) != 0 || ctx.Err() != nil || limit <= pageLimit/16 || !brokenOff(err) {
			return p, err
		}
		limit /= 4
		if next == "" {
			f.begun = false
		}
	}
}

// brokenOff reports whether an answer ended before its end.
func brokenOff(err error) bool {
	return errors.Is(err, io.ErrUnexpectedEOF) || strings.Contains(err.Error(), "stream error")
}

func (f *feed) readPage(ctx context.Context, next string, limit int) (page, error) {
	q := f.query()
	q.Set("limit", strconv.Itoa(limit))
	if next != "" {
		q.Set("continue", next)
	}
	l := f.w.c.limits()
	l.turn = f.turn
	f.turn.newPage()
	resp, err := f.get(ctx, l, request{path: f.path(), query: q, accept: f.accept(acceptMetadataList)})
	if err != nil {
		return page{}, err
	}
	defer resp.Body.Close()
	if err := f.answered(ctx); err != nil {
		return page{}, err
	}
	s := f.splitter(ctx, resp.Body)
	defer s.close()
	return s.list(f.head, func(raw []byte) error {
		return f.object(ctx, Item, s, raw)
	})
}

func (f *feed) accept(metadata string) string {
	if f.metadataOnly {
		return metadata
	}
	return acceptJSON
}

func (f *feed) splitter(ctx context.Context, body io.Reader) *splitter {
	s := newSplitter(body, &f.w.cfg.Shared.buffers)
	s.turn = &bigTurn{ctx: ctx, turns: f.w.cfg.Shared.big, limit: f.w.cfg.BigObject, body: body, of: f.turn}
	s.wipe = f.Kind == secretKind
	return s
}

// stream reads a watch that begins with all objects and marks their end.
func (f *feed) stream(ctx context.Context) (vedette.Mark, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	q := f.query()
	q.Set("watch", "true")
	q.Set("sendInitialEvents", "true")
	q.Set("resourceVersionMatch", "NotOlderThan")
	q.Set("allowWatchBookmarks", "true")
	q.Set("timeoutSeconds", strconv.Itoa(int(f.w.cfg.MostWatch/time.Second)))
	// StreamSilence, which means that lists are tried instead, comes first.
	l := limits{head: f.w.c.opts.Head, body: 2 * f.w.cfg.StreamSilence, turn: f.turn}
	resp, err := f.get(ctx, l, request{path: f.path(), query: q, accept: f.accept(acceptMetadata)})
	if err != nil {
		return "", f.noStream(err)
	}
	defer resp.Body.Close()
	if err := f.answered(ctx); err != nil {
		return "", err
	}
	silence := time.AfterFunc(f.w.cfg.StreamSilence, func() { cancel(errNoStream) })
	defer silence.Stop()
	s := f.splitter(ctx, resp.Body)
	defer s.close()
	for {
		mark, err := f.initial(ctx, s, silence)
		if context.Cause(ctx) == errNoStream {
			err = errNoStream
		}
		if mark != "" || err != nil {
			return mark, f.noStream(err)
		}
	}
}

// initial handles one message of a stream. It returns the mark once the objects
// have ended.
func (f *feed) initial(ctx context.Context, s *splitter, silence *time.Timer) (vedette.Mark, error) {
	fr, err := s.frame()
	silence.Stop()
	defer silence.Reset(f.w.cfg.StreamSilence)
	switch {
	case err == errTooBig:
		return "", f.object(ctx, Item, s, nil)
	case err != nil:
		return "", unexpected(err)
	}
	switch fr.Type {
	case "ADDED", "MODIFIED":
		return "", f.object(ctx, Item, s, fr.Object)
	case "DELETED":
		return "", f.object(ctx, Delete, s, fr.Object)
	case "ERROR":
		return "", parseStatus(fr.Object)
	case "BOOKMARK":
		m, err := metaOf(fr.Object)
		if err == nil && !m.Initial {
			err = errNoStream // an older API server, that took this for a plain watch
		}
		return m.Version, err
	}
	return "", unknownFrame(fr)
}

// noStream remembers that an API group can't do this.
func (f *feed) noStream(err error) error {
	switch code := codeOf(err); {
	case err == errNoStream, code == http.StatusBadRequest, code == http.StatusUnprocessableEntity,
		code == http.StatusForbidden && strings.Contains(err.Error(), "sendInitialEvents"):
		f.w.streamless.Store(f.Kind.Group, true)
		return errNoStream
	}
	return err
}

func unknownFrame(fr frame) error {
	return fmt.Errorf("%w: a watch event of type %.20q", errGarbage, fr.Type)
}
