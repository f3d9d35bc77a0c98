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
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return fmt.Errorf("encode a response: %w", err)
	}
	etag.Write(w, r, b.Bytes(), xxhash.Sum64(b.Bytes()))
	return nil
}
