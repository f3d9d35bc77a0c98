package fleet

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// watchResponse is one watch in progress.
type watchResponse struct {
	*query
	w            http.ResponseWriter
	sentRevision uint64 // revision up to which events were sent
	buf          []byte
	err          error // of the connection; nothing is written after an error
}

// watch sends changes until the client disconnects or its timeout ends.
func (q *query) watch(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), q.timeout())
	defer cancel()
	wt := &watchResponse{query: q, w: w}
	if !wt.begin() {
		return
	}
	bookmarks := time.NewTicker(q.cluster.fleet.cfg.Bookmarks)
	defer bookmarks.Stop()
	for wt.err == nil {
		changes, more, upTo, err := q.registry.since(wt.sentRevision)
		if err != nil {
			wt.sendExpired()
			return
		}
		if len(changes) > 0 {
			wt.sendChanges(changes)
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

// begin writes the response header, and all objects if the watch begins with them.
func (wt *watchResponse) begin() bool {
	initial := wt.values.Get("sendInitialEvents") == "true"
	if initial && wt.values.Get("resourceVersionMatch") != "NotOlderThan" {
		writeStatus(wt.w, http.StatusUnprocessableEntity, "Invalid", "sendInitialEvents is forbidden without resourceVersionMatch NotOlderThan")
		return false
	}
	from := wt.values.Get("resourceVersion")
	if from != "" && from != "0" && !initial {
		revision, err := strconv.ParseUint(from, 10, 64)
		if err != nil {
			writeStatus(wt.w, http.StatusBadRequest, "BadRequest", "invalid resource version: "+from)
			return false
		}
		wt.sentRevision = revision
		wt.flush()
		return true
	}
	wt.snapshot()
	if initial {
		wt.bookmark(wt.sentRevision, `,"annotations":{"k8s.io/initial-events-end":"true"}`)
	}
	wt.flush()
	return true
}

func (wt *watchResponse) snapshot() {
	objects, revision, _, _, err := wt.registry.page(0, 0, 0, wt.matches)
	if err != nil {
		panic(err) // cannot happen: the current revision has not expired
	}
	for _, o := range objects {
		wt.event("ADDED", o.i, o.version.revision())
	}
	wt.sentRevision = revision
}

func (wt *watchResponse) sendChanges(changes []change) {
	for _, c := range changes {
		if wt.matches(c.number) {
			wt.event(c.eventType(), c.number, c.after.revision())
		}
		wt.sentRevision = c.after.revision()
	}
	wt.flush()
}

func (wt *watchResponse) event(verb string, i int, revision uint64) {
	wt.buf = append(append(append(wt.buf, `{"type":"`...), verb...), `","object":`...)
	wt.buf = append(wt.append(wt.buf, i, revision), "}\n"...)
	if len(wt.buf) > 32<<10 {
		wt.write()
	}
}

// bookmark sends a bookmark at a revision.
func (wt *watchResponse) bookmark(revision uint64, annotations string) {
	kind, apiVersion := wt.registry.Kind.Name, wt.registry.APIVersion()
	if wt.metadata {
		kind, apiVersion = "PartialObjectMetadata", "meta.k8s.io/v1"
	}
	wt.buf = fmt.Appendf(wt.buf, `{"type":"BOOKMARK","object":{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"%d","creationTimestamp":null%s}}}`+"\n",
		kind, apiVersion, revision, annotations)
	wt.sentRevision = max(wt.sentRevision, revision)
	wt.flush()
}

func (wt *watchResponse) sendExpired() {
	wt.buf = fmt.Appendf(wt.buf, `{"type":"ERROR","object":%s}`+"\n",
		statusJSON(http.StatusGone, "Expired", fmt.Sprintf("too old resource version: %d (%d)", wt.sentRevision, wt.registry.dropped)))
	wt.flush()
}

func (wt *watchResponse) write() {
	if wt.err == nil {
		_, wt.err = wt.w.Write(wt.buf)
	}
	wt.buf = wt.buf[:0]
	if cap(wt.buf) > 64<<10 {
		wt.buf = nil
	}
}

func (wt *watchResponse) flush() {
	wt.write()
	wt.buf = nil // because most watches are quiet most of the time
	if wt.err == nil {
		wt.err = http.NewResponseController(wt.w).Flush()
	}
}
