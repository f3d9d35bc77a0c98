package apistub

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// bookmarkInterval is how often a watch sends a bookmark, as API servers do in a quiet cluster.
const bookmarkInterval = time.Minute

// watch serves a watch, which stays open until the client disconnects or its timeout ends.
func (c *Cluster) watch(w http.ResponseWriter, r *http.Request, q request) {
	from, wantsInitialEvents := q.query.Get("resourceVersion"), q.query.Get("sendInitialEvents") == "true"
	w.Header().Set("Content-Type", "application/json")
	if wantsInitialEvents || from == "" || from == "0" {
		for _, o := range c.selected(q) {
			fmt.Fprintf(w, `{"type":"ADDED","object":%s}`+"\n", q.encode(o))
		}
	}
	if wantsInitialEvents {
		c.bookmark(w, q, `,"annotations":{"k8s.io/initial-events-end":"true"}`)
	}
	seconds, err := strconv.Atoi(q.query.Get("timeoutSeconds"))
	if err != nil || seconds <= 0 {
		seconds = 45 * 60
	}
	timeout := time.NewTimer(time.Duration(seconds) * time.Second)
	defer timeout.Stop()
	bookmarks := time.NewTicker(bookmarkInterval)
	defer bookmarks.Stop()
	for http.NewResponseController(w).Flush() == nil {
		select {
		case <-r.Context().Done():
			return
		case <-timeout.C:
			return
		case <-bookmarks.C:
			if q.query.Get("allowWatchBookmarks") == "true" {
				c.bookmark(w, q, "")
			}
		}
	}
}

func (c *Cluster) bookmark(w http.ResponseWriter, q request, annotations string) {
	kind, apiVersion := q.Kind.Name, q.APIVersion()
	if q.metadataOnly {
		kind, apiVersion = "PartialObjectMetadata", "meta.k8s.io/v1"
	}
	fmt.Fprintf(w, `{"type":"BOOKMARK","object":{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"%d","creationTimestamp":null%s}}}`+"\n",
		kind, apiVersion, c.revision, annotations)
}
