package watch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/vedette-io/vedette"
)

// briefWatch is how long a watch must last to count as one.
const briefWatch = time.Second

// watch tells what happens after the mark until the watch ends.
func (f *feed) watch(ctx context.Context) error {
	f.watching.Store(true)
	defer f.watching.Store(false)
	plan := f.planWatch()
	// A proxy that lost the API server would keep the answer open for ever. The
	// sink may block for as long as it likes, so this bounds the request alone.
	request, cancel := context.WithTimeout(ctx, plan.last+time.Minute)
	defer cancel()
	began := time.Now()
	resp, err := f.openWatch(request, plan)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if !f.hushed || f.told.State != vedette.FeedFailing {
		if err := f.tell(ctx, vedette.FeedLive, ""); err != nil {
			return err
		}
	}
	err = f.changes(ctx, resp.Body)
	if time.Since(began) >= min(briefWatch, plan.last/2) {
		f.progress, f.relists = true, 0
	}
	switch {
	case silent(err) && ctx.Err() == nil:
		return f.fellSilent()
	case err == io.EOF && !f.progress:
		return errShort
	case err == io.EOF:
		return f.spoke(ctx)
	case request.Err() != nil && ctx.Err() == nil:
		return nil
	}
	return err
}

func (f *feed) openWatch(ctx context.Context, plan watchPlan) (*http.Response, error) {
	q := f.query()
	q.Set("watch", "true")
	q.Set("allowWatchBookmarks", "true")
	q.Set("resourceVersion", string(f.mark))
	q.Set("timeoutSeconds", strconv.Itoa(max(1, int(plan.last/time.Second))))
	return f.open(ctx, plan.limits, request{path: f.path(), query: q, accept: f.accept(acceptMetadata)})
}

// changes tells one message after the other. It returns io.EOF where the watch
// ends between two.
func (f *feed) changes(ctx context.Context, body io.Reader) error {
	s := f.splitter(ctx, body)
	defer s.close()
	for {
		fr, err := s.frame()
		if err == errTooBig {
			err = f.tooBig(ctx, s)
		} else if err == nil {
			err = f.change(ctx, s, fr)
		}
		if err == nil && f.hushed {
			err = f.spoke(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// tooBig handles a watch event that is too big. Of an object that is gone its name is
// needed, so such an event costs a list: what is gone is not in it.
func (f *feed) tooBig(ctx context.Context, s *splitter) error {
	if t := frameType(s.big); t != "ADDED" && t != "MODIFIED" {
		s.big = nil
		return ErrUnreadable
	}
	return f.object(ctx, Upsert, s, nil)
}

// frameType returns the type of a watch event, of which the beginning is given.
func frameType(beginning []byte) (name string) {
	s := splitBytes(beginning)
	_ = s.object(func(key string) error {
		if key != "type" {
			return s.skip()
		}
		b, err := s.text()
		name = string(b)
		return errors.Join(err, errEnough)
	})
	return name
}

func (f *feed) change(ctx context.Context, s *splitter, fr frame) error {
	switch fr.Type {
	case "ADDED", "MODIFIED":
		return f.object(ctx, Upsert, s, fr.Object)
	case "DELETED":
		return f.object(ctx, Delete, s, fr.Object)
	case "BOOKMARK":
		return f.bookmark(ctx, fr.Object)
	case "ERROR":
		return parseStatus(fr.Object)
	}
	return unknownFrame(fr)
}

func (f *feed) bookmark(ctx context.Context, raw []byte) error {
	mark, err := versionOf(raw)
	if err != nil {
		return err
	}
	if older(mark, f.mark) {
		return errBackwards
	}
	return f.advance(ctx, Event{Type: Bookmark, Mark: mark})
}

// older reports whether one resourceVersion lies before another. Since
// Kubernetes 1.35 that is part of the API for those that are numbers; nothing
// is concluded from others.
func older(a, b vedette.Mark) bool {
	x, errX := strconv.ParseUint(string(a), 10, 64)
	y, errY := strconv.ParseUint(string(b), 10, 64)
	return errX == nil && errY == nil && x < y
}

// advance hands over a change and takes its mark.
func (f *feed) advance(ctx context.Context, e Event) error {
	if err := f.put(ctx, e); err != nil {
		return err
	}
	f.mark, f.progress, f.tries, f.relists = e.Mark, true, 0, 0
	return nil
}

// object hands over one object. Nil stands for one that was too big, which is
// left out, and said so.
func (f *feed) object(ctx context.Context, t EventType, s *splitter, raw []byte) error {
	if raw == nil {
		beginning := s.big
		s.big = nil
		return f.leaveOut(ctx, beginning)
	}
	if f.metadataOnly {
		var err error
		if raw, err = onlyMetadata(raw, f.head); err != nil {
			return err
		}
	}
	t, err := f.managed(t, raw)
	if err != nil || t == 0 {
		return err
	}
	if t == Item || t == Delete && f.mark == "" {
		return f.put(ctx, Event{Type: t, Raw: raw})
	}
	mark, err := versionOf(raw)
	if err != nil {
		return err
	}
	return f.advance(ctx, Event{Type: t, Raw: raw, Mark: mark})
}

// managed says what an event comes to where only objects that Spinnaker manages
// are wanted: nothing, for one of a snapshot that it does not, and a Delete for
// a change of one, since it may have managed it before. No list of those that
// are known is kept here.
func (f *feed) managed(t EventType, raw []byte) (EventType, error) {
	if !f.managedOnly || t == Delete {
		return t, nil
	}
	m, err := metaOf(raw)
	switch {
	case err != nil || m.Managed:
		return t, err
	case t == Item:
		return 0, nil
	}
	return Delete, nil
}

// insideFrame returns the beginning of an object where what is given is the
// beginning of the watch event around it.
func insideFrame(beginning []byte) []byte {
	s := splitBytes(beginning)
	_ = s.object(func(key string) error {
		if key == "object" {
			beginning = s.buf[s.pos:]
			return errEnough
		}
		return s.skip()
	})
	return beginning
}

// leaveOut names an object that was too big, as far as its beginning tells.
func (f *feed) leaveOut(ctx context.Context, beginning []byte) error {
	m, _ := metaOf(insideFrame(beginning)) // it is cut off; what was found counts
	f.note = fmt.Sprintf("%s/%s is bigger than 16 MiB and left out", firstOf(m.Namespace, "-"), firstOf(m.Name, "an object"))
	return f.tell(ctx, f.told.State, f.note)
}
