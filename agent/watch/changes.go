package watch

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/jsonstream"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/watch/lifecycle"
)

// minWatchDuration is how long a watch must last to count as progress.
const minWatchDuration = time.Second

// earlyEnd is by how much a watch must end earlier than requested to count as ended by something else
// than its time.
const earlyEnd = 2 * time.Second

// watch reports what happens after the mark until the watch ends.
func (f *feed) watch(ctx context.Context, w lifecycle.Watch) error {
	f.w.verifier.notify() // the feed's turn may be due
	plan := f.planWatch(w.IsShort)
	// A proxy that lost the API server would keep the response open forever. The sink may
	// block for any time, so this bounds only the request.
	requestCtx, cancel := context.WithTimeout(ctx, plan.duration+time.Minute)
	defer cancel()
	began := time.Now()
	resp, err := f.openWatch(requestCtx, w.Mark, plan)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	defer func() { f.evidence.Close(f.w.lastProof(), time.Now()) }()
	if err := f.handle(ctx, lifecycle.WatchOpened{}); err != nil {
		return err
	}
	err = f.readEvents(ctx, resp.Body)
	lasted := time.Since(began)
	if lasted >= min(minWatchDuration, plan.duration/2) {
		f.step(lifecycle.Lasted{})
	}
	switch {
	case isIdleTimeout(err) && ctx.Err() == nil:
		return f.handle(ctx, lifecycle.WatchEnded{End: lifecycle.EndedSilent})
	case err == io.EOF && lasted < plan.requested()-earlyEnd:
		return f.handle(ctx, lifecycle.WatchEnded{End: lifecycle.EndedEarly})
	case err == io.EOF:
		return f.handle(ctx, lifecycle.WatchEnded{End: lifecycle.EndedByServer})
	case requestCtx.Err() != nil && ctx.Err() == nil:
		return f.handle(ctx, lifecycle.WatchEnded{End: lifecycle.EndedOverdue})
	}
	return err
}

func (f *feed) openWatch(ctx context.Context, mark vedette.Mark, plan watchPlan) (*http.Response, error) {
	var conn *kube.Conn
	resp, err := f.requestWatch(ctx, mark, plan, func(c *kube.Conn) { conn = c })
	if err == nil {
		f.evidence.Open(conn, time.Now())
		f.w.wantProof()
	}
	return resp, err
}

func (f *feed) requestWatch(ctx context.Context, mark vedette.Mark, plan watchPlan, onConn func(*kube.Conn)) (*http.Response, error) {
	q := f.query()
	q.Set("watch", "true")
	q.Set("allowWatchBookmarks", "true")
	q.Set("resourceVersion", string(mark))
	q.Set("timeoutSeconds", strconv.Itoa(int(plan.requested()/time.Second)))
	return f.getStream(ctx, plan.timeouts, kube.GetRequest{Path: f.ListPath(), Query: q, Accept: f.acceptHeader(kube.AcceptMetadata),
		OnConn: onConn})
}

// readEvents reports one message after the other. It returns io.EOF if the watch ends
// between two messages.
func (f *feed) readEvents(ctx context.Context, body io.Reader) error {
	s := f.newSplitterOf(f.evidence.Reader(body), f.newReadPermit(ctx, body, f.permit))
	defer s.Close()
	for {
		fr, err := s.Frame()
		if errors.Is(err, jsonstream.ErrTooLarge) {
			err = f.handleTooLarge(ctx, s)
		} else if err == nil {
			err = f.handleFrame(ctx, s, fr)
		}
		if err != nil {
			return err
		}
	}
}

// handleTooLarge handles a watch event that is too large. Of a deleted object the name is
// needed, so such an event costs a list, in which the object is missing.
func (f *feed) handleTooLarge(ctx context.Context, s *jsonstream.Splitter) error {
	beginning := s.TakeOverflowPrefix()
	if t := jsonstream.FrameType(beginning); t != "ADDED" && t != "MODIFIED" {
		return ErrUnreadable
	}
	return f.reportSkipped(ctx, beginning)
}

func (f *feed) handleFrame(ctx context.Context, s *jsonstream.Splitter, fr jsonstream.Frame) error {
	switch fr.Type {
	case "ADDED", "MODIFIED":
		return f.handleObject(ctx, Upsert, s, fr.Object)
	case "DELETED":
		return f.handleObject(ctx, Delete, s, fr.Object)
	case "BOOKMARK":
		return f.bookmark(ctx, fr.Object)
	case "ERROR":
		return kube.ParseStatus(fr.Object)
	}
	return errUnknownFrame(fr)
}

func (f *feed) bookmark(ctx context.Context, raw []byte) error {
	version, err := jsonstream.ResourceVersion(raw)
	if err != nil {
		return err
	}
	mark := vedette.Mark(version)
	if before, _ := f.mark(); isOlder(mark, before) {
		return errClusterRolledBack
	}
	return f.advance(ctx, &Event{Type: Bookmark, Mark: mark})
}

// isOlder reports whether resourceVersion a lies before b. Kubernetes 1.35 made this
// comparison part of the API for numbers. Nothing is concluded from other values.
func isOlder(a, b vedette.Mark) bool {
	x, errX := strconv.ParseUint(string(a), 10, 64)
	y, errY := strconv.ParseUint(string(b), 10, 64)
	return errX == nil && errY == nil && x < y
}

// advance passes a change to the sink and then takes its mark.
func (f *feed) advance(ctx context.Context, e *Event) error {
	if err := f.put(ctx, e); err != nil {
		return err
	}
	return f.handle(ctx, lifecycle.Changed{Mark: e.Mark})
}

// handleObject passes one object to the sink. Nil stands for an object that was too
// large; it is skipped, and the status of the feed names it.
func (f *feed) handleObject(ctx context.Context, t EventType, s *jsonstream.Splitter, raw []byte) error {
	if raw == nil {
		return f.reportSkipped(ctx, s.TakeOverflowPrefix())
	}
	if f.metadataOnly {
		var err error
		raw, err = jsonstream.OnlyMetadata(raw, f.typeMeta)
		if err != nil {
			return err
		}
	}
	t, err := f.filterManaged(t, raw)
	if err != nil || t == 0 {
		return err
	}
	e := Event{Type: t, Raw: raw}
	if t == Item || f.permit != nil {
		return f.put(ctx, &e)
	}
	version, err := jsonstream.ResourceVersion(raw)
	if err != nil {
		return err
	}
	e.Mark = vedette.Mark(version)
	return f.advance(ctx, &e)
}

// filterManaged returns what an event becomes in a feed of objects that Spinnaker
// manages. An item that Spinnaker does not manage becomes nothing. A change of one becomes
// a Delete, because Spinnaker may have managed the object before, and the feed keeps no
// list of known objects.
func (f *feed) filterManaged(t EventType, raw []byte) (EventType, error) {
	if !f.managedOnly || t == Delete {
		return t, nil
	}
	m, err := jsonstream.ReadMeta(raw)
	switch {
	case err != nil || m.Managed:
		return t, err
	case t == Item:
		return 0, nil
	}
	return Delete, nil
}

// reportSkipped reports an object that was too large, by the name in its beginning.
func (f *feed) reportSkipped(ctx context.Context, beginning []byte) error {
	m, _ := jsonstream.ReadMeta(jsonstream.FrameObject(beginning)) // the object is cut off, so an error is expected
	name := cmp.Or(m.Namespace, "-") + "/" + cmp.Or(m.Name, "an object")
	return f.handle(ctx, lifecycle.Skipped{Message: name + " is larger than 16 MiB and was skipped"})
}
