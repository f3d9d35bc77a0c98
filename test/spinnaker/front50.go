package main

import (
	"encoding/json"
	"net/http"
	"strings"
)

// front50Handler answers as a Front50 that knows every application and nothing else, which suffices
// for Orca: it asks whether an application exists and what it allows.
func front50Handler() http.Handler {
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
