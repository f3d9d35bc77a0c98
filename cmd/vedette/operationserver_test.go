package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
)

// receivedOperation has the fields of an operation by which tests choose the answer.
type receivedOperation struct{ ID, Account, Verb string }

// serveOperations serves accounts whose operations a test answers, and returns the URL.
func serveOperations(t *testing.T, accounts []string, execute func(w http.ResponseWriter, r *http.Request, op receivedOperation)) (url string) {
	t.Helper()
	var items []map[string]string
	for _, name := range accounts {
		items = append(items, map[string]string{"name": name})
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_ = json.NewEncoder(w).Encode(map[string]any{"items": items})
			return
		}
		var op receivedOperation
		if err := json.NewDecoder(r.Body).Decode(&op); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		execute(w, r, op)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// numberedAccounts returns names: a000, a001, ….
func numberedAccounts(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("a%03d", i))
	}
	return names
}
