package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/cespare/xxhash/v2"

	"github.com/vedette-io/vedette/internal/etag"
)

// writeJSON writes v as JSON, with an ETag.
func writeJSON(w http.ResponseWriter, r *http.Request, v any) error {
	body, err := encode(v)
	if err != nil {
		return err
	}
	etag.Write(w, r, body, xxhash.Sum64(body))
	return nil
}

// writeWithFreshness writes a JSON object and adds the members of its freshness. The ETag does
// not depend on watermarks, because they change all the time; a client that gets "not
// modified" reads them from the headers.
func writeWithFreshness(w http.ResponseWriter, r *http.Request, f freshness, body []byte) error {
	stableFreshness, err := encode(f.withoutWatermarks())
	if err != nil {
		return err
	}
	fullFreshness, err := encode(f)
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

func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, fmt.Errorf("encode a response: %w", err)
	}
	return b.Bytes(), nil
}
