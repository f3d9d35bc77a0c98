package api

import (
	_ "embed"
	"net/http"

	"github.com/cespare/xxhash/v2"

	"github.com/vedette-io/vedette/internal/tagged"
)

// The document is written as YAML; openapi.json is made of it (TestDocumentJSON
// with -update).
var (
	//go:embed openapi.yaml
	documentYAML []byte
	//go:embed openapi.json
	documentJSON []byte
)

func (a *api) getDocumentYAML(w http.ResponseWriter, r *http.Request) error {
	return writeDocument(w, r, "application/yaml", documentYAML)
}

func (a *api) getDocumentJSON(w http.ResponseWriter, r *http.Request) error {
	return writeDocument(w, r, "application/json", documentJSON)
}

func writeDocument(w http.ResponseWriter, r *http.Request, contentType string, document []byte) error {
	if _, err := parameters(r); err != nil {
		return err
	}
	w.Header().Set("Content-Type", contentType)
	tagged.Write(w, r, document, xxhash.Sum64(document))
	return nil
}
