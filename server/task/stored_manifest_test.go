package task_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/task"
)

// fakeArtifactStore has manifests by "application/hash".
type fakeArtifactStore map[string]string

func (s fakeArtifactStore) Stored(ctx context.Context, application, hash string, mayRead func(context.Context, string) error) (string, error) {
	if err := mayRead(ctx, application); err != nil {
		return "", err
	}
	content, ok := s[application+"/"+hash]
	if !ok {
		return "", vedette.Errorf(vedette.NotFound, "there is no %s/%s", application, hash)
	}
	return base64.StdEncoding.EncodeToString([]byte(content)), nil
}

func stored(reference string) string {
	return fmt.Sprintf(`{"name":"stored-entity","type":"remote/map/base64","reference":%q}`, reference)
}

func configMap(name string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":"shop","annotations":{"strategy.spinnaker.io/versioned":"false"}}}`, name)
}

// TestStoredManifestsAreExpanded deploys manifests of which some are in the artifact store.
func TestStoredManifestsAreExpanded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(task.Config{ArtifactStore: fakeArtifactStore{"shop/a": configMap("a"), "shop/b": configMap("b")}})
		body := `[{"deployManifest":{"account":"prod","manifests":[` + stored("ref://shop/a") + "," + configMap("c") + "," + stored("ref://shop/b") + `]}}]`
		s.post(t, "/kubernetes/ops", body)
		synctest.Wait()
		var names []string
		for _, op := range s.cluster.ops {
			if a, ok := op.Args.(vedette.ApplyArgs); ok {
				var m struct{ Metadata struct{ Name string } }
				if err := json.Unmarshal(a.Manifest, &m); err != nil {
					t.Fatal(err)
				}
				names = append(names, m.Metadata.Name)
			}
		}
		if got := strings.Join(names, " "); got != "a c b" {
			t.Errorf("got the manifests %q, want %q", got, "a c b")
		}
	})
}

func TestStoredManifestsThatCannotBeRead(t *testing.T) {
	store := fakeArtifactStore{"shop/text": "hunter2", "shop/a": configMap("a")}
	for _, tt := range []struct {
		name, body string
		store      fakeArtifactStore
		status     int
		want       string
	}{
		{"no store", `{"manifests":[{},` + stored("ref://shop/a") + `]}`, nil, 400,
			"manifests[1] is not in the request, but in an artifact store (ref://shop/a), which this server does not read: remove artifact-store from the configuration of Orca"},
		{"a single manifest without a store", `{"manifest":` + stored("ref://shop/a") + `}`, nil, 400, "manifest is not in the request"},
		{"not there", `{"manifests":[` + stored("ref://shop/x") + `]}`, store, 400, "read manifests[0] from the artifact store: there is no shop/x"},
		{"not a reference", `{"manifest":` + stored("http://metadata/") + `}`, store, 400, "the reference of manifest must be of the form ref://APPLICATION/HASH"},
		{"no hash", `{"manifest":` + stored("ref://shop") + `}`, store, 400, "must be of the form"},
		{"not a manifest", `{"manifest":` + stored("ref://shop/text") + `}`, store, 400, "manifest in the artifact store is not a manifest"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := task.Config{}
			if tt.store != nil {
				cfg.ArtifactStore = tt.store
			}
			s := newServer(cfg)
			body := `[{"deployManifest":` + strings.Replace(tt.body, "{", `{"account":"prod",`, 1) + `}]`
			status, response := s.request(t, http.MethodPost, "/kubernetes/ops", body)
			if status != tt.status || !strings.Contains(response, tt.want) || strings.Contains(response, "hunter2") || s.cluster.count() > 0 {
				t.Errorf("got %d %s, want %d and %q", status, response, tt.status, tt.want)
			}
		})
	}
}

// FuzzStoredManifests checks that no request with references causes a panic, and that what a
// reference hides is validated like what is not hidden.
func FuzzStoredManifests(f *testing.F) {
	for _, seed := range []string{`{"manifests":[` + stored("ref://shop/a") + `]}`, `{"manifest":` + stored("ref://shop/text") + `}`,
		`{"manifests":{"type":"remote/map/base64"}}`, `{"manifests":[[` + stored("ref://a/b") + `]],"patchBody":null}`, `["remote/map/base64"]`} {
		f.Add(seed, configMap("a"))
	}
	f.Fuzz(func(t *testing.T, description, content string) {
		s := newServer(task.Config{ArtifactStore: fakeArtifactStore{"shop/a": content, "shop/text": "x"}})
		status, response := s.request(t, http.MethodPost, "/kubernetes/ops/deployManifest", description)
		if status == http.StatusInternalServerError {
			t.Errorf("%s: got %d %s", description, status, response)
		}
	})
}
