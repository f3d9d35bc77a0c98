package applications

import (
	"net/http"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/vedette-io/vedette/internal/etag"
)

// encodedResponse is a response that is kept for several requests. It is read-only.
type encodedResponse struct {
	body       []byte
	compressed []byte // the body in gzip; nil if it is small
	tag        uint64 // a hash of the body
}

// minCompressed is the size from which a response is kept in compressed form, too. Compressing
// takes longer than anything else about a large response, and nearly all callers want it.
const minCompressed = 16 << 10

func newEncodedResponse(body []byte) (*encodedResponse, error) {
	e := &encodedResponse{body: append(body, '\n'), tag: xxhash.Sum64(body)}
	if len(body) < minCompressed {
		return e, nil
	}
	var err error
	e.compressed, err = compress(e.body)
	return e, err
}

// Bytes is the memory that the response takes.
func (e *encodedResponse) Bytes() int64 { return int64(len(e.body) + len(e.compressed)) }

// write writes the response, compressed if it is kept so and the client accepts that. The
// handler that compresses other responses leaves those that have an encoding.
func (e *encodedResponse) write(w http.ResponseWriter, r *http.Request) {
	if !etag.Begin(w, r, e.tag) {
		return
	}
	if e.compressed != nil && acceptsGzip(r) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(e.compressed) // the client may have disconnected
		return
	}
	_, _ = w.Write(e.body)
}

// acceptsGzip reports whether a request accepts gzip. A quality of 0 excludes it.
func acceptsGzip(r *http.Request) bool {
	for _, header := range r.Header.Values("Accept-Encoding") {
		for part := range strings.SplitSeq(header, ",") {
			coding, quality, _ := strings.Cut(strings.TrimSpace(part), ";")
			quality = strings.TrimRight(strings.ReplaceAll(quality, " ", ""), "0")
			if strings.EqualFold(strings.TrimSpace(coding), "gzip") && quality != "q=" && quality != "q=0." && quality != "q=." {
				return true
			}
		}
	}
	return false
}
