package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/cespare/xxhash/v2"

	"github.com/vedette-io/vedette/internal/tagged"
)

// writeJSON answers with a document that says all there is to say.
func writeJSON(w http.ResponseWriter, r *http.Request, v any) error {
	body, err := encode(v)
	if err != nil {
		return err
	}
	tagged.Write(w, r, body, xxhash.Sum64(body))
	return nil
}

// writeWithFreshness answers with a JSON object and, as further members of it, how fresh
// it is. The tag leaves the watermarks out, which move all the time, or no
// answer would ever be the same; a reader that is told "not modified" finds them
// in the headers.
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
	tagged.Write(w, r, joinObjects(body, fullFreshness), tag.Sum64())
	return nil
}

// joinObjects makes one JSON object of two, the first of which must not be empty.
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
