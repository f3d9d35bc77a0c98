package fleet

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// watching is one watch while it lasts.
type watching struct {
	*query
	w        http.ResponseWriter
	revision uint64 // up to which it was told
	buf      []byte
	err      error // of the connection; nothing is written after it
}

// watch tells changes until the client leaves or its timeout is over.
func (q *query) watch(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), q.timeout())
	defer cancel()
	wt := &watching{query: q, w: w}
	if !wt.begin() {
		return
	}
	bookmarks := time.NewTicker(q.cluster.fleet.cfg.Bookmarks)
	defer bookmarks.Stop()
	for wt.err == nil {
		changes, more, upTo, err := q.series.since(wt.revision)
		if err != nil {
			wt.tooOld()
			return
		}
		if len(changes) > 0 {
			wt.tell(changes)
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-more:
		case <-bookmarks.C:
			if q.values.Get("allowWatchBookmarks") == "true" {
				wt.bookmark(upTo, "")
			}
		}
	}
}

func (q *query) timeout() time.Duration {
	if seconds, err := strconv.Atoi(q.values.Get("timeoutSeconds")); err == nil && seconds > 0 {
		return time.Duration(seconds) * time.Second
	}
	return 45 * time.Minute
}

// begin writes the head, and all objects where the watch begins with them.
func (wt *watching) begin() bool {
	initial := wt.values.Get("sendInitialEvents") == "true"
	if initial && wt.values.Get("resourceVersionMatch") != "NotOlderThan" {
		refuse(wt.w, http.StatusUnprocessableEntity, "Invalid", "sendInitialEvents is forbidden without resourceVersionMatch NotOlderThan")
		return false
	}
	from := wt.values.Get("resourceVersion")
	if from != "" && from != "0" && !initial {
		revision, err := strconv.ParseUint(from, 10, 64)
		if err != nil {
			refuse(wt.w, http.StatusBadRequest, "BadRequest", "invalid resource version: "+from)
			return false
		}
		wt.revision = revision
		wt.flush()
		return true
	}
	wt.snapshot()
	if initial {
		wt.bookmark(wt.revision, `,"annotations":{"k8s.io/initial-events-end":"true"}`)
	}
	wt.flush()
	return true
}

func (wt *watching) snapshot() {
	objects, revision, _, _, err := wt.series.page(0, 0, 0, wt.wanted)
	if err != nil {
		panic(err) // what is now has not expired
	}
	for _, o := range objects {
		wt.event("ADDED", o.i, o.is.revision())
	}
	wt.revision = revision
}

func (wt *watching) tell(changes []change) {
	for _, c := range changes {
		if wt.wanted(c.i) {
			wt.event(c.verb(), c.i, c.is.revision())
		}
		wt.revision = c.is.revision()
	}
	wt.flush()
}

func (wt *watching) event(verb string, i int, revision uint64) {
	wt.buf = append(append(append(wt.buf, `{"type":"`...), verb...), `","object":`...)
	wt.buf = append(wt.append(wt.buf, i, revision), "}\n"...)
	if len(wt.buf) > 32<<10 {
		wt.write()
	}
}

// bookmark says that nothing else happened up to a revision.
func (wt *watching) bookmark(revision uint64, annotations string) {
	kind, apiVersion := wt.series.Kind.Name, wt.series.APIVersion()
	if wt.metadata {
		kind, apiVersion = "PartialObjectMetadata", "meta.k8s.io/v1"
	}
	wt.buf = fmt.Appendf(wt.buf, `{"type":"BOOKMARK","object":{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"%d","creationTimestamp":null%s}}}`+"\n",
		kind, apiVersion, revision, annotations)
	wt.revision = max(wt.revision, revision)
	wt.flush()
}

func (wt *watching) tooOld() {
	wt.buf = fmt.Appendf(wt.buf, `{"type":"ERROR","object":%s}`+"\n",
		status(http.StatusGone, "Expired", fmt.Sprintf("too old resource version: %d (%d)", wt.revision, wt.series.dropped)))
	wt.flush()
}

func (wt *watching) write() {
	if wt.err == nil {
		_, wt.err = wt.w.Write(wt.buf)
	}
	wt.buf = wt.buf[:0]
	if cap(wt.buf) > 64<<10 {
		wt.buf = nil
	}
}

func (wt *watching) flush() {
	wt.write()
	wt.buf = nil // most watches are quiet most of the time
	if wt.err == nil {
		wt.err = http.NewResponseController(wt.w).Flush()
	}
}
