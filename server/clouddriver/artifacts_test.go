package clouddriver_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/server/clouddriver"
	"github.com/vedette-io/vedette/server/readtest"
)

func TestEmbeddedArtifactsAreFetched(t *testing.T) {
	server := serve(t, clouddriver.Config{Store: readtest.New(t).Store})
	for _, tt := range []struct {
		name, path, body string
		status           int
		want             string
	}{
		{"the result of a bake", "/artifacts/fetch", `{"type":"embedded/base64","name":"web","reference":"a2luZDogU2VydmljZQo=","artifactAccount":"embedded-artifact"}`, 200, "kind: Service\n"},
		{"a trailing slash, as Orca before Retrofit 2 sends it", "/artifacts/fetch/", `{"type":"embedded/base64","reference":"a2luZDogU2VydmljZQo=","artifactAccount":"embedded-artifact","metadata":{},"customKind":false}`, 200, "kind: Service\n"},
		{"without padding", "/artifacts/fetch", `{"type":"embedded/base64","reference":"a2luZDogU2VydmljZQo","artifactAccount":"embedded-artifact"}`, 200, "kind: Service\n"},
		{"base64 with line breaks", "/artifacts/fetch", `{"type":"embedded/base64","reference":"a2luZDog\nU2VydmljZQo=\n","artifactAccount":"embedded-artifact"}`, 200, "kind: Service\n"},
		{"nothing", "/artifacts/fetch", `{"type":"embedded/base64","artifactAccount":"embedded-artifact"}`, 200, ""},
		{"no base64", "/artifacts/fetch", `{"type":"embedded/base64","name":"web","reference":"kind: Service","artifactAccount":"embedded-artifact"}`, 400, `the reference of artifact \"web\" is not valid base64`},
		{"no account", "/artifacts/fetch", `{"type":"embedded/base64","name":"web","reference":"a2luZA=="}`, 400, "An artifact account must be supplied to download this artifact"},
		{"an unknown account", "/artifacts/fetch", `{"type":"github/file","name":"web.yaml","artifactAccount":"gh"}`, 404, "Credentials 'gh' supporting artifact type 'github/file' cannot be found"},
		{"a type that the account does not support", "/artifacts/fetch", `{"type":"embedded/hex","artifactAccount":"embedded-artifact"}`, 500, "Embedded type 'embedded/hex' is not handled."},
		{"an object in a cluster", "/artifacts/fetch", `{"type":"kubernetes/secret","artifactAccount":"kubernetes"}`, 500, "Kubernetes artifacts are retrieved by kubernetes directly"},
		{"an image", "/artifacts/fetch", `{"type":"docker/image","artifactAccount":"docker-registry"}`, 500, "Docker references are passed on"},
		{"a custom artifact", "/artifacts/fetch", `{"type":"custom/object","artifactAccount":"custom-artifact"}`, 500, "Custom references are passed on"},
		{"remote content that is embedded", "/artifacts/fetch", `{"type":"remote/base64","reference":"a2luZDogU2VydmljZQo=","artifactAccount":"embedded-artifact"}`, 200, "kind: Service\n"},
		{"remote content without a store", "/artifacts/fetch", `{"type":"remote/base64","reference":"ref://shop/abc","artifactAccount":"embedded-artifact"}`, 400, "this server has none: set artifact-store"},
		{"no JSON", "/artifacts/fetch", `kind: Service`, 400, "the body is not an artifact"},
		{"a list", "/artifacts/fetch", `[]`, 400, "the body is not an artifact"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			status, body, header := send(t, http.MethodPut, server+tt.path, strings.NewReader(tt.body))
			if status != tt.status || status == http.StatusOK && body != tt.want || !strings.Contains(body, tt.want) {
				t.Errorf("got %d: %s, want %d: %s", status, body, tt.status, tt.want)
			}
			if got, want := header.Get("Content-Type"), "application/octet-stream"; status == http.StatusOK && got != want {
				t.Errorf("Content-Type: got %q, want %q", got, want)
			}
		})
	}
}

func TestBuiltInArtifactAccountsAreListed(t *testing.T) {
	server := serve(t, clouddriver.Config{Store: readtest.New(t).Store})
	_, body := get(t, server+"/artifacts/credentials")
	want := `[{"name":"embedded-artifact","types":["embedded/base64","remote/base64"],"type":"artifacts-embedded"},` +
		`{"name":"docker-registry","types":["docker/image"],"type":"artifacts-docker"},` +
		`{"name":"kubernetes","types":["kubernetes/configMap","kubernetes/deployment","kubernetes/replicaSet","kubernetes/secret"],"type":"artifacts-kubernetes"},` +
		`{"name":"custom-artifact","types":["custom/object"],"type":"artifacts-custom"}]`
	if got := strings.TrimSpace(string(body)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
