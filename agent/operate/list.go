package operate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/request"
)

// maxBufferedList is up to how many bytes a list is kept until it is complete. A longer one is sent
// while it is read.
const maxBufferedList = 512 << 10

// list returns all objects of a kind that match the selectors.
func (r *run) list(ctx context.Context, a vedette.ListArgs) result {
	p, err := r.ResolveTarget(ctx, a.Target)
	if err != nil {
		return errorResult(err)
	}
	return r.listResult(ctx, p.Collection(), a.LabelSelector, a.FieldSelector)
}

// listResult is the result of a verb that returns several objects. If they are many, they are read while the
// outcome is sent.
func (r *run) listResult(_ context.Context, p request.Path, labels, fields string) result {
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
func (r *run) redactedObjects(ctx context.Context, p request.Path, labels, fields string) iter.Seq2[json.RawMessage, error] {
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
				return request.Final(vedette.Errorf(vedette.Unavailable, "the list of %s was interrupted while it was read: repeat it", p.Kind))
			}
			return nil
		}
		err := r.ForEachItem(ctx, p, p.ListRequest(labels, fields), begin, func(page int, raw []byte) error {
			obj, out, err := r.Redactor().ReadObject(buf[:0], p.Resource, raw)
			if err != nil {
				return request.Final(fmt.Errorf("redact a %s: %w", p.Kind, err))
			}
			pageOfLast, hasObjects = page, true
			if buf = out; cap(buf) > 2*request.ListBuffer {
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
var errStopped = request.Final(errors.New("the list is not read any more"))

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
		if err := l.run.UseMemory(ctx, 2*int64(len(raw))+64); err != nil {
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
		err = &request.StatusError{Status: http.StatusGone, Reason: "Expired",
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
	version              string
	managers             managers
	owned                bool // by a controller
}

// listMeta returns the metadata of the objects of a collection. It asks for metadata only.
func (r *run) listMeta(ctx context.Context, p request.Path, labels, fields string) ([]listedMeta, error) {
	var all request.Pages[listedMeta]
	err := r.ForEachItem(ctx, p, p.ListMetaRequest(labels, fields), all.Begin, func(_ int, raw []byte) error {
		meta, err := parseListedMeta(raw)
		if err != nil {
			return request.Final(err)
		}
		all.Items = append(all.Items, meta)
		r.NoteVersion(vedette.Key{Kind: p.Kind, Namespace: meta.namespace, Name: meta.name}, meta.version)
		// The keys of the outcome, too.
		return r.UseMemory(ctx, int64(4*(len(meta.namespace)+len(meta.name)+len(meta.uid))+meta.managers.size()+256))
	})
	return all.Items, err
}
