// Package tagged answers HTTP requests with an entity tag, and with 304 those
// who have the same answer already.
package tagged

import (
	"net/http"
	"strconv"
	"strings"
)

// Write answers with a body of the Content-Type that is set, JSON where none is,
// and the tag of what it says. The tag is a weak one: what is compressed on its
// way is not the same bytes.
func Write(w http.ResponseWriter, r *http.Request, body []byte, tag uint64) {
	if Begin(w, r, tag) {
		_, _ = w.Write(body) // a reader that is gone is no failure of ours
	}
}

// Begin is Write for a body that the caller writes itself, piece by piece, if it
// returns true. Else the answer is complete.
func Begin(w http.ResponseWriter, r *http.Request, tag uint64) bool {
	h := w.Header()
	h.Set("ETag", formatTag(tag))
	h.Set("Cache-Control", "no-cache") // keep it, but ask each time
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
