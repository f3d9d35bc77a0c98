package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/vedette-io/vedette/test/compatibility"
)

// front50 stands in for Front50, with applications and pipelines, and for Echo, which starts pipelines for Deck.
type front50 struct {
	applications []string
	start        func(pipeline map[string]any) error // in Orca

	mu        sync.Mutex
	pipelines []map[string]any
}

func (f *front50) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v2/applications", func(w http.ResponseWriter, _ *http.Request) {
		var list []any
		for _, name := range f.applications {
			list = append(list, application(name))
		}
		answer(w, list)
	})
	mux.HandleFunc("GET /v2/applications/{name}", func(w http.ResponseWriter, r *http.Request) {
		if name := strings.ToLower(r.PathValue("name")); slices.Contains(f.applications, name) {
			answer(w, application(name))
			return
		}
		http.NotFound(w, r)
	})
	mux.HandleFunc("POST /pipelines", f.savePipeline)
	mux.HandleFunc("GET /pipelines", func(w http.ResponseWriter, _ *http.Request) { answer(w, f.list(nil)) })
	mux.HandleFunc("GET /pipelines/{application}", func(w http.ResponseWriter, r *http.Request) {
		answer(w, f.list(func(p map[string]any) bool { return p["application"] == r.PathValue("application") }))
	})
	mux.HandleFunc("GET /pipelines/{id}/get", func(w http.ResponseWriter, r *http.Request) {
		if found := f.list(func(p map[string]any) bool { return p["id"] == r.PathValue("id") }); len(found) == 1 {
			answer(w, found[0])
			return
		}
		http.NotFound(w, r)
	})
	mux.HandleFunc("POST /{$}", f.startPipeline)
	for _, path := range []string{"GET /quietPeriod", "GET /capabilities/quietPeriod"} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { answer(w, map[string]bool{"enabled": false}) })
	}
	mux.HandleFunc("GET /notifications/application/{name}", func(w http.ResponseWriter, _ *http.Request) { answer(w, struct{}{}) })
	mux.Handle("/", compatibility.Front50Handler())
	return mux
}

func application(name string) map[string]any {
	return map[string]any{"name": strings.ToUpper(name), "email": "team@example.com", "cloudProviders": "kubernetes", "permissions": struct{}{},
		"createTs": "1700000000000", "updateTs": "1700000000000", "lastModifiedBy": "tester", "user": "tester",
		"dataSources": map[string][]string{"enabled": {"kubernetesRawResources"}, "disabled": {}}}
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the client may be gone
}

// list returns the pipelines for which a function reports true.
func (f *front50) list(isWanted func(map[string]any) bool) []map[string]any {
	f.mu.Lock()
	defer f.mu.Unlock()
	found := []map[string]any{}
	for _, p := range f.pipelines {
		if isWanted == nil || isWanted(p) {
			found = append(found, p)
		}
	}
	return found
}

func (f *front50) savePipeline(w http.ResponseWriter, r *http.Request) {
	var p map[string]any
	if err := json.NewDecoder(r.Body).Decode(&p); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	p["id"], p["updateTs"] = ulid.Make().String(), fmt.Sprint(time.Now().UnixMilli())
	f.pipelines = append(f.pipelines, p)
	answer(w, p)
}

// startPipeline handles the event that Gate sends to Echo when a user starts a pipeline.
func (f *front50) startPipeline(w http.ResponseWriter, r *http.Request) {
	var event struct {
		EventID string
		Content struct {
			Application, PipelineNameOrID string
			Trigger                       map[string]any
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&event); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	content := event.Content
	for _, p := range f.list(func(p map[string]any) bool { return p["application"] == content.Application }) {
		if p["name"] == content.PipelineNameOrID || p["id"] == content.PipelineNameOrID {
			execution := maps.Clone(p)
			execution["executionId"], execution["trigger"] = content.Trigger["executionId"], content.Trigger
			if err := f.start(execution); err != nil {
				http.Error(w, err.Error(), http.StatusBadGateway)
				return
			}
		}
	}
	answer(w, map[string]string{"eventId": event.EventID})
}
