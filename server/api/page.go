package api

import (
	"net/http"

	"github.com/cespare/xxhash/v2"

	"github.com/vedette-io/vedette/internal/etag"
	"github.com/vedette-io/vedette/internal/jsonwriter"
	"github.com/vedette-io/vedette/server/rest"
	"github.com/vedette-io/vedette/server/store/read"
)

// writePage writes a page of objects like writeWithFreshness, but frees each object after it
// is sent. As one body, they would take the memory of the page two or three times.
func writePage(w http.ResponseWriter, r *http.Request, f freshness, page read.Page) error {
	stableFreshness, err := rest.Encode(f.withoutWatermarks())
	if err != nil {
		return err
	}
	fullFreshness, err := rest.Encode(f)
	if err != nil {
		return err
	}
	f.setHeaders(w.Header())
	if !etag.Begin(w, r, pageETag(page, stableFreshness)) {
		return nil
	}
	p := rest.PieceWriter{W: w}
	p.B = append(p.B, `{"items":[`...)
	for i := range page.Items {
		if i > 0 {
			p.B = append(p.B, ',')
		}
		p.B = appendObject(p.B, &page.Items[i])
		page.Items[i] = read.Row{}
		p.Flush(rest.PieceBytes)
	}
	p.B = append(p.B, ']')
	p.B = append(appendPageEnd(p.B, page), ',')
	p.B = append(p.B, fullFreshness[1:]...)
	p.Flush(0)
	return nil
}

// pageETag hashes the content of a page. Manifests are hashed as they are stored. The rest is
// small, so it is encoded once more for the hash.
func pageETag(page read.Page, stableFreshness []byte) uint64 {
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
func appendPageEnd(b []byte, page read.Page) []byte {
	o := objectWriter{jsonwriter.Writer{B: append(b, ',')}}
	o.Number("total", page.Total)
	o.optionalText("cursor", page.Next)
	return o.B
}
