package api

import (
	"bytes"
	"net/http"

	"github.com/cespare/xxhash/v2"

	"github.com/vedette-io/vedette/internal/etag"
	"github.com/vedette-io/vedette/server/rest"
)

// writeWithFreshness writes a JSON object and adds the members of its freshness. The ETag does
// not depend on watermarks, because they change all the time; a client that gets "not
// modified" reads them from the headers.
func writeWithFreshness(w http.ResponseWriter, r *http.Request, f freshness, body []byte) error {
	stableFreshness, err := rest.Encode(f.withoutWatermarks())
	if err != nil {
		return err
	}
	fullFreshness, err := rest.Encode(f)
	if err != nil {
		return err
	}
	tag := xxhash.New()
	_, _ = tag.Write(body) // hashing does not fail
	_, _ = tag.Write(stableFreshness)
	f.setHeaders(w.Header())
	etag.Write(w, r, joinObjects(body, fullFreshness), tag.Sum64())
	return nil
}

// joinObjects joins the members of two JSON objects. The first must not be empty.
func joinObjects(a, b []byte) []byte {
	end := bytes.LastIndexByte(a, '}')
	return append(append(a[:end], ','), b[1:]...)
}
