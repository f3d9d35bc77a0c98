package compatibility

import (
	"encoding/json"
	"net/http"
	"strings"
)

// Front50Handler answers as a Front50 that knows every application and nothing else. That suffices for
// Orca, which asks whether an application exists and what it allows, and for a server whose projects
// and templates nobody asks for.
func Front50Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v2/applications/{name}", func(w http.ResponseWriter, r *http.Request) {
		answer(w, map[string]any{"name": strings.ToUpper(r.PathValue("name")), "email": "team@example.com", "cloudProviders": "kubernetes",
			"permissions": map[string]any{}})
	})
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) { answer(w, map[string]string{"status": "UP"}) })
	mux.HandleFunc("GET /", func(w http.ResponseWriter, _ *http.Request) { answer(w, []any{}) })
	return mux
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the client may be gone
}
