package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// TestPipelinesUseEachStage checks what each pipeline sends to Orca.
func TestPipelinesUseEachStage(t *testing.T) {
	pipelines, err := parsePipelines(pipelinesFile, "prod", "run-1")
	if err != nil {
		t.Fatal(err)
	}
	if len(pipelines) != 55 {
		t.Errorf("got %d pipelines, want 55", len(pipelines))
	}
	var types []string
	for _, p := range pipelines {
		raw, err := json.Marshal(p.request("prod", "run-1"))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(raw), "NAMESPACE") || strings.Contains(string(raw), "ACCOUNT") {
			t.Errorf("%s: a placeholder remains in %s", p.Name, raw)
		}
		var request struct {
			Stages []struct {
				Type, Account        string
				RequisiteStageRefIDs []string
				Manifests            []struct{ APIVersion, Kind string }
			}
		}
		if err := json.Unmarshal(raw, &request); err != nil {
			t.Fatal(err)
		}
		for i, s := range request.Stages {
			if s.Type == "" || s.Account == "" || len(s.RequisiteStageRefIDs) != min(i, 1) {
				t.Errorf("%s: stage %d: got %+v, want a type, an account and the stage before it", p.Name, i+1, s)
			}
			for _, m := range s.Manifests {
				if m.APIVersion == "" || m.Kind == "" {
					t.Errorf("%s: stage %d: got a manifest without apiVersion or kind", p.Name, i+1)
				}
			}
			types = append(types, s.Type)
		}
	}
	slices.Sort(types)
	const want = "[checkPreconditions deleteManifest deployManifest disableManifest enableManifest findArtifactsFromResource findImage patchManifest pauseRolloutManifest resumeRolloutManifest rollingRestartManifest runJobManifest scaleManifest undoRolloutManifest]"
	if got := fmt.Sprint(slices.Compact(types)); got != want {
		t.Errorf("got stages %s, want %s", got, want)
	}
}

func TestArtifactIsEmbedded(t *testing.T) {
	pipelines, err := parsePipelines(pipelinesFile, "prod", "run-1")
	if err != nil {
		t.Fatal(err)
	}
	index := slices.IndexFunc(pipelines, func(p pipeline) bool { return p.Name == "from an artifact" })
	tree := pipelines[index].Stages[0].tree("prod", "run-1")
	artifact := tree["manifestArtifact"].(map[string]any)
	if tree["manifests"] != nil || artifact["text"] != nil || !strings.HasPrefix(artifact["reference"].(string), "YXBpVmVyc2lvbj") {
		t.Errorf("got %v, want an encoded artifact and no manifests", tree)
	}
}

// standIn answers as an Orca whose pipelines end as they are told, at the second poll.
func standIn(end func(name string) string) *httptest.Server {
	ends, polls := map[string]string{}, map[string]int{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orchestrate", func(w http.ResponseWriter, r *http.Request) {
		var request struct{ Name string }
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil || request.Name == "restart" {
			http.Error(w, "refused", http.StatusBadRequest)
			return
		}
		id := fmt.Sprint(len(ends))
		ends[id] = end(request.Name)
		fmt.Fprintf(w, `{"ref":"/pipelines/%s"}`, id)
	})
	mux.HandleFunc("GET /pipelines/{id}", func(w http.ResponseWriter, r *http.Request) {
		id := r.PathValue("id")
		polls[id]++
		status := "RUNNING"
		if polls[id] > 1 {
			status = ends[id]
		}
		fmt.Fprintf(w, `{"status":%q,"stages":[{"type":"deployManifest","status":%[1]q,"context":{"exception":{"details":{"errors":["words"]}}}}]}`, status)
	})
	return httptest.NewServer(mux)
}

func TestUnexpectedPipelineEndsAreNamed(t *testing.T) {
	server := standIn(func(name string) string {
		if strings.HasPrefix(name, "scale what") || name == "scale a StatefulSet" {
			return "TERMINAL"
		}
		return "SUCCEEDED"
	})
	defer server.Close()
	var out strings.Builder
	err := run(t.Context(), options{url: server.URL, account: "prod", namespace: "n", only: "scale "}, &out)
	if err == nil || err.Error() != "1 of 5 pipelines ended otherwise" {
		t.Errorf("got %v, want one difference of 5\n%s", err, out.String())
	}
	if !strings.Contains(out.String(), "scale a StatefulSet: TERMINAL\ndeployManifest TERMINAL: words") {
		t.Errorf("got\n%s\nwant the failed stage and its words", out.String())
	}
	out.Reset()
	err = run(t.Context(), options{url: server.URL, account: "prod", namespace: "n", only: "restart"}, &out)
	if err == nil || !strings.Contains(out.String(), "400 Bad Request: refused") {
		t.Errorf("a refused pipeline: got %v\n%s", err, out.String())
	}
}

func TestMissingOrcaIsExplained(t *testing.T) {
	for want, o := range map[string]options{
		"--orca-args":    {},
		"find Orca":      {arguments: "/nowhere/orca.args"},
		"1 of 1 pipelin": {url: "http://127.0.0.1:1"},
	} {
		o.only = "run it again"
		if err := run(t.Context(), o, &strings.Builder{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want %q", err, want)
		}
	}
}
