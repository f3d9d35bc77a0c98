package api

import (
	"net/http"
	"strconv"

	"github.com/cespare/xxhash/v2"

	"github.com/vedette-io/vedette/internal/etag"
	"github.com/vedette-io/vedette/server/store"
)

// writePage writes a page of objects like writeWithFreshness, but frees each object after it
// is sent. As one body, they would take the memory of the page two or three times.
func writePage(w http.ResponseWriter, r *http.Request, f freshness, page store.Page) error {
	stableFreshness, err := encode(f.withoutWatermarks())
	if err != nil {
		return err
	}
	fullFreshness, err := encode(f)
	if err != nil {
		return err
	}
	f.setHeaders(w.Header())
	if !etag.Begin(w, r, pageETag(page, stableFreshness)) {
		return nil
	}
	p := pageWriter{w: w}
	p.b = append(p.b, `{"items":[`...)
	for i := range page.Items {
		if i > 0 {
			p.b = append(p.b, ',')
		}
		p.b = appendObject(p.b, &page.Items[i])
		page.Items[i] = store.Row{}
		p.flush(flushSize)
	}
	p.b = append(p.b, ']')
	p.b = append(appendPageEnd(p.b, page), ',')
	p.b = append(p.b, fullFreshness[1:]...)
	p.flush(0)
	return nil
}

// pageETag hashes the content of a page. Manifests are hashed as they are stored. The rest is
// small, so it is encoded once more for the hash.
func pageETag(page store.Page, stableFreshness []byte) uint64 {
	tag := xxhash.New() // hashing does not fail
	var b []byte
	for _, row := range page.Items {
		body := row.Body
		row.Body = nil
		b = appendObject(b[:0], &row)
		_, _ = tag.Write(b)
		_, _ = tag.Write(body)
	}
	_, _ = tag.Write(appendPageEnd(b[:0], page))
	_, _ = tag.Write(stableFreshness)
	return tag.Sum64()
}

// appendPageEnd appends the members after the objects, without the closing brace.
func appendPageEnd(b []byte, page store.Page) []byte {
	b = strconv.AppendInt(append(b, `,"total":`...), page.Total, 10)
	if page.Next != "" {
		o := objectWriter{b}
		o.text("cursor", page.Next)
		b = o.b
	}
	return b
}

const flushSize = 64 << 10

// pageWriter writes in pieces. It ignores errors, because they mean that the client is gone.
type pageWriter struct {
	w      http.ResponseWriter
	b      []byte
	failed bool
}

// flush writes the buffer if it has more than minBytes.
func (p *pageWriter) flush(minBytes int) {
	if len(p.b) <= minBytes {
		return
	}
	if !p.failed {
		_, err := p.w.Write(p.b)
		p.failed = err != nil
	}
	p.b = p.b[:0]
}
