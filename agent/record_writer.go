package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/metrics"
	"github.com/vedette-io/vedette/agent/outbox"
	"github.com/vedette-io/vedette/agent/redact"
	"github.com/vedette-io/vedette/agent/watch"
	"github.com/vedette-io/vedette/wire"
)

// Keys of changes that concern a feed itself. Keys of objects never begin with a zero byte.
const (
	bookmarkKey = "\x00bookmark"
	statusKey   = "\x00status"
	verifyKey   = "\x00verify"
	verifiedKey = "\x00verified"
)

// recordWriter turns the events of an account's watcher into redacted records of the change stream, and puts these into the
// outbox.
type recordWriter struct {
	account           vedette.AccountName
	box               *outbox.Box
	redactor          *redact.Redactor
	indexes           *indexes
	announcements     *feedAnnouncements
	setClusterError   func(error)  // nil clears it
	setSelectionError func(error)  // nil clears it
	setWaitReason     func(string) // "" clears it
	metrics           *metrics.Metrics
	log               *slog.Logger

	mu        sync.Mutex
	snapshots map[vedette.Feed]*index // of feeds with a running snapshot
}

// redacted is a redacted object, before it is copied into a record.
type redacted struct {
	object vedette.Object
	body   []byte
}

// scratch holds values of type *redacted, for their buffers.
var scratch = sync.Pool{New: func() any { return new(redacted) }}

func (r *redacted) release() {
	r.object = vedette.Object{}
	if cap(r.body) > 1<<20 {
		r.body = nil
	}
	scratch.Put(r)
}

// Put implements watch.Sink.
func (w *recordWriter) Put(ctx context.Context, e watch.Event) error {
	switch e.Type {
	case watch.Declare:
		return w.declare(ctx, &e)
	case watch.Begin:
		return w.begin(ctx, &e)
	case watch.Item:
		return w.item(ctx, &e)
	case watch.End:
		return w.end(ctx, &e)
	case watch.Upsert:
		return w.upsert(ctx, &e, outbox.Live)
	case watch.Delete:
		return w.delete(ctx, &e)
	case watch.Bookmark:
		return w.bookmark(ctx, &e)
	case watch.Status:
		if e.Feed == (vedette.Feed{}) {
			w.accountStatus(&e)
			return nil
		}
		return w.status(ctx, &e)
	}
	return fmt.Errorf("unknown event %s of feed %s", e.Type, e.Feed)
}

func (w *recordWriter) accountStatus(e *watch.Event) {
	if e.State == vedette.FeedPending {
		w.setWaitReason(e.Message)
		return
	}
	w.setClusterError(clusterError(e))
}

// clusterError returns the error in the status of an account, or nil if there is none.
func clusterError(e *watch.Event) error {
	switch {
	case e.Message == "":
		return nil
	case e.State == vedette.FeedDenied:
		return vedette.Errorf(vedette.Denied, "%s", e.Message)
	}
	return vedette.Errorf(vedette.Unavailable, "%s", e.Message)
}

func selectionError(problem string) error {
	if problem == "" {
		return nil
	}
	return vedette.Errorf(vedette.Invalid, "%s", problem)
}

func (w *recordWriter) status(ctx context.Context, e *watch.Event) error {
	record, err := wire.EncodeStep(&wire.Record_Status{Status: &wire.Status{State: string(e.State), Message: e.Message}})
	if err != nil {
		return err
	}
	if e.State == vedette.FeedPending {
		w.box.ResumeFeed(w.account, e.Feed, e.Mark)
	}
	return w.announcements.setStatus(ctx, e.Feed, e.State, record)
}

// put encodes a step and puts it into the outbox.
func (w *recordWriter) put(ctx context.Context, feed vedette.Feed, c outbox.Change, step wire.Step) error {
	record, err := wire.EncodeStep(step)
	if err != nil {
		return err
	}
	return w.putRecord(ctx, feed, c, record)
}

func (w *recordWriter) putRecord(ctx context.Context, feed vedette.Feed, c outbox.Change, record []byte) error {
	c.Account = w.account
	c.Feed = feed
	c.Record = record
	return w.box.Put(ctx, c)
}

func (w *recordWriter) declare(ctx context.Context, e *watch.Event) error {
	d := &wire.Declare{UnknownGroups: e.UnknownGroups}
	feeds := map[vedette.Feed]bool{}
	for _, f := range e.Feeds {
		feeds[f.Feed] = true
		d.Feeds = append(d.Feeds, &wire.DeclaredFeed{
			Feed: wire.FromFeed(f.Feed), Version: f.Resource.Version, Plural: f.Resource.Plural, Singular: f.Resource.Singular,
			ShortNames: f.Resource.ShortNames, Namespaced: f.Resource.Namespaced,
		})
	}
	record, err := wire.EncodeStep(&wire.Record_Declare{Declare: d})
	if err != nil {
		return err
	}
	w.setSelectionError(selectionError(e.Problem))
	return w.announcements.declare(ctx, feeds, record)
}

// begin starts a snapshot. It discards unsent changes of the feed, and waits for the index
// of the server, so that the agent sends only objects that differ.
func (w *recordWriter) begin(ctx context.Context, e *watch.Event) error {
	feed := e.Feed
	w.metrics.SnapshotBegan()
	x := w.indexes.expect(feed)
	w.box.DiscardFeed(w.account, feed)
	begin := &wire.Record_Begin{Begin: &wire.Begin{NamedDigests: true, Anew: e.Anew}}
	if err := w.put(ctx, feed, outbox.Change{Priority: outbox.Live}, begin); err != nil {
		return err
	}
	if err := x.wait(ctx); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.snapshots[feed] = x
	return nil
}

func (w *recordWriter) snapshot(feed vedette.Feed) (*index, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	x := w.snapshots[feed]
	if x == nil {
		return nil, fmt.Errorf("feed %s of account %s continues a snapshot without a Begin", feed, w.account)
	}
	return x, nil
}

// item puts an object of a snapshot, unless the server already has this version.
func (w *recordWriter) item(ctx context.Context, e *watch.Event) error {
	x, err := w.snapshot(e.Feed)
	if err != nil {
		return err
	}
	header, err := redact.ReadMetadata(e.Raw)
	if err == nil && x.has(header.Namespace, header.Name, header.UID, header.ResourceVersion) {
		return nil
	}
	return w.upsert(ctx, e, outbox.Bulk)
}

// upsert redacts an object and puts the result.
//
// It runs on the stacks of thousands of feeds, which the garbage collector halves only one at a time.
// So the large values of its steps do not lie on the stack together: redacting, which goes deepest, has
// returned before the change is put.
func (w *recordWriter) upsert(ctx context.Context, e *watch.Event, priority outbox.Priority) error {
	key, version, record, err := w.encode(e, priority == outbox.Live)
	if err != nil {
		w.log.Error("object left out because it cannot be read", "feed", e.Feed.String(), "error", err)
		return w.skipObject(ctx, e, priority)
	}
	if priority != outbox.Live {
		version = ""
	}
	return w.putObject(ctx, e, priority, key, version, record)
}

// putObject puts a change of an object.
//
//go:noinline
func (w *recordWriter) putObject(ctx context.Context, e *watch.Event, priority outbox.Priority, key string, mark vedette.Mark,
	record []byte) error {
	return w.putRecord(ctx, e.Feed, outbox.Change{Priority: priority, Key: key, Mark: mark}, record)
}

// encode redacts an object, and returns its key, its version and its record.
func (w *recordWriter) encode(e *watch.Event, live bool) (key string, version vedette.Mark, record []byte, err error) {
	r := scratch.Get().(*redacted)
	defer r.release()
	r.body, err = w.redactor.ObjectInto(&r.object, r.body[:0], e.Resource, e.Raw)
	if err != nil {
		return "", "", nil, err
	}
	return r.object.Namespace + "/" + r.object.Name, vedette.Mark(r.object.ResourceVersion), wire.EncodeUpsert(r.object, live), nil
}

// skipObject advances the mark past an object that is left out.
func (w *recordWriter) skipObject(ctx context.Context, e *watch.Event, priority outbox.Priority) error {
	if priority == outbox.Bulk || e.Mark == "" {
		return nil
	}
	return w.bookmark(ctx, e)
}

func (w *recordWriter) delete(ctx context.Context, e *watch.Event) error {
	header, err := redact.ReadMetadata(e.Raw)
	if err == nil && header.Name == "" {
		err = errors.New("the object has no name")
	}
	var record []byte
	if err == nil {
		record, err = wire.EncodeStep(&wire.Record_Delete{Delete: &wire.Delete{Namespace: header.Namespace, Name: header.Name,
			ResourceVersion: string(e.Mark)}})
	}
	if err != nil {
		w.log.Warn("cannot read a deletion, listing the feed again", "feed", e.Feed.String(), "error", err)
		return watch.ErrUnreadable
	}
	return w.putRecord(ctx, e.Feed, outbox.Change{Priority: outbox.Live, Key: header.Namespace + "/" + header.Name, Mark: e.Mark}, record)
}

func (w *recordWriter) bookmark(ctx context.Context, e *watch.Event) error {
	return w.put(ctx, e.Feed, outbox.Change{Priority: outbox.Deferred, Key: bookmarkKey, Mark: e.Mark, IsBookmark: true},
		&wire.Record_Bookmark{Bookmark: &wire.Bookmark{ResourceVersion: string(e.Mark), Remembered: true}})
}

// digestsPerRecord is how many digests go into one record: 64 KiB of them.
const digestsPerRecord = 8 << 10

// end ends a snapshot. It sends the digests of objects that the server has and the cluster
// has not.
func (w *recordWriter) end(ctx context.Context, e *watch.Event) error {
	x, err := w.snapshot(e.Feed)
	if err != nil {
		return err
	}
	err = x.forEachUnseen(digestsPerRecord, func(digests []uint64) error {
		return w.put(ctx, e.Feed, outbox.Change{Priority: outbox.Bulk}, &wire.Record_Drop{Drop: &wire.Drop{Digests: digests}})
	})
	if err != nil {
		return err
	}
	w.mu.Lock()
	delete(w.snapshots, e.Feed)
	w.mu.Unlock()
	return w.put(ctx, e.Feed, outbox.Change{Priority: outbox.Bulk, Mark: e.Mark},
		&wire.Record_End{End: &wire.End{ResourceVersion: string(e.Mark)}})
}
