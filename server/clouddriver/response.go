package clouddriver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/cespare/xxhash/v2"

	"github.com/vedette-io/vedette/internal/etag"
)

func writeJSON(w http.ResponseWriter, r *http.Request, v any) error {
	b, err := encode(v)
	if err != nil {
		return err
	}
	etag.Write(w, r, b, xxhash.Sum64(b))
	return nil
}

// encode returns a value as JSON, with a line break at its end.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, fmt.Errorf("encode a response: %w", err)
	}
	return b.Bytes(), nil
}
