// Package etag writes HTTP responses with an ETag, and 304 Not Modified if the client already has
// the response.
package etag

import (
	"net/http"
	"strconv"
	"strings"
)

// Write writes a response with an ETag for tag. The Content-Type is JSON unless it is set. The ETag
// is a weak one, because the compressed response has other bytes.
func Write(w http.ResponseWriter, r *http.Request, body []byte, tag uint64) {
	if Begin(w, r, tag) {
		_, _ = w.Write(body) // the client may have disconnected
	}
}

// Begin is like Write, for a caller that writes the body itself if Begin returns true. If it
// returns false, the response is complete.
func Begin(w http.ResponseWriter, r *http.Request, tag uint64) bool {
	h := w.Header()
	h.Set("ETag", formatTag(tag))
	h.Set("Cache-Control", "no-cache") // cache it, but revalidate each time
	if matchesTag(r, tag) {
		h.Del("Content-Type")
		w.WriteHeader(http.StatusNotModified)
		return false
	}
	if h.Get("Content-Type") == "" {
		h.Set("Content-Type", "application/json")
	}
	return true
}

func formatTag(tag uint64) string { return `W/"` + strconv.FormatUint(tag, 16) + `"` }

func matchesTag(r *http.Request, tag uint64) bool {
	for _, header := range r.Header.Values("If-None-Match") {
		for part := range strings.SplitSeq(header, ",") {
			part = strings.TrimSpace(part)
			if part == "*" || strings.TrimPrefix(part, "W/") == strings.TrimPrefix(formatTag(tag), "W/") {
				return true
			}
		}
	}
	return false
}
