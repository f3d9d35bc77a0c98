package api

import (
	_ "embed"
	"net/http"

	"github.com/cespare/xxhash/v2"

	"github.com/vedette-io/vedette/internal/etag"
	"github.com/vedette-io/vedette/server/api/parameters"
)

// openapi.json is generated from openapi.yaml (TestOpenAPIJSONMatchesYAML with -update).
var (
	//go:embed openapi.yaml
	openAPIYAML []byte
	//go:embed openapi.json
	openAPIJSON []byte
)

func (a *api) getOpenAPIYAML(w http.ResponseWriter, r *http.Request) error {
	return writeOpenAPI(w, r, "application/yaml", openAPIYAML)
}

func (a *api) getOpenAPIJSON(w http.ResponseWriter, r *http.Request) error {
	return writeOpenAPI(w, r, "application/json", openAPIJSON)
}

func writeOpenAPI(w http.ResponseWriter, r *http.Request, contentType string, document []byte) error {
	if _, err := parameters.Parse(r); err != nil {
		return err
	}
	w.Header().Set("Content-Type", contentType)
	etag.Write(w, r, document, xxhash.Sum64(document))
	return nil
}
