package clouddriver_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/server/artifacts"
	"github.com/vedette-io/vedette/server/artifacts/egress"
	"github.com/vedette-io/vedette/server/clouddriver"
	"github.com/vedette-io/vedette/server/readtest"
)

// serveArtifacts serves the API with accounts for one other server.
func serveArtifacts(t *testing.T, handler http.HandlerFunc) (api, other string) {
	t.Helper()
	otherServer := httptest.NewServer(handler)
	t.Cleanup(otherServer.Close)
	return serve(t, clouddriver.Config{Store: readtest.New(t).Store, Artifacts: newArtifactAccounts(otherServer.URL)}), otherServer.URL
}

func newArtifactAccounts(url string) *artifacts.Accounts {
	return artifacts.New(artifacts.Config{HTTPEnabled: true,
		Helm:   []artifacts.HelmAccount{{Name: "charts", Repository: url}},
		Store:  artifacts.StoreConfig{Type: "s3", S3: artifacts.StoreBucket{Bucket: "store", URL: url, Region: "here", ForcePathStyle: true}},
		Policy: egress.Policy{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}})
}

// serveRepository serves a repository with the chart "web", and a bucket with an object of the
// application "shop".
func serveRepository(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/index.yaml":
			fmt.Fprint(w, "entries:\n  web:\n  - version: 1.0.0\n  - version: 2.0.0\n")
		case r.URL.Path != "/store/shop/abc":
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, "<Error><Code>NoSuchKey</Code></Error>")
		case r.URL.Query().Has("tagging"):
			fmt.Fprint(w, "<Tagging><TagSet><Tag><Key>application</Key><Value>shop</Value></Tag></TagSet></Tagging>")
		default:
			fmt.Fprint(w, "content")
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func fetchFile(t *testing.T, api, reference string) (*http.Response, []byte, error) {
	t.Helper()
	body := fmt.Sprintf(`{"type":"http/file","artifactAccount":"no-auth-http-account","reference":%q}`, reference)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, api+"/artifacts/fetch", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept-Encoding", "gzip")
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	return response, content, err
}

// TestFetchedContentIsNotChanged checks that content is sent as it is, and not compressed a second time.
func TestFetchedContentIsNotChanged(t *testing.T) {
	want := make([]byte, 5<<20)
	_, _ = rand.Read(want)
	api, other := serveArtifacts(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(want) })
	response, got, err := fetchFile(t, api, other)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("got %d bytes, %v, want the %d bytes of the file", len(got), err, len(want))
	}
	for name, value := range map[string]string{"Content-Encoding": "", "No-Gzip-Compression": "", "Content-Type": "application/octet-stream"} {
		if header := response.Header.Get(name); header != value {
			t.Errorf("%s: got %q, want %q", name, header, value)
		}
	}
}

// TestFetchOfHalfAFile checks that a client cannot take half a file for the whole.
func TestFetchOfHalfAFile(t *testing.T) {
	api, other := serveArtifacts(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000000")
		_, _ = w.Write(make([]byte, 500_000))
	})
	if response, got, err := fetchFile(t, api, other); err == nil {
		t.Errorf("got status %d and %d bytes without an error", response.StatusCode, len(got))
	}
}

func TestFailedFetchIsExplained(t *testing.T) {
	api, other := serveArtifacts(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/cut":
			conn, _, _ := http.NewResponseController(w).Hijack()
			fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n")
			conn.Close()
		case "/empty":
		default:
			http.NotFound(w, r)
		}
	})
	for _, tt := range []struct {
		reference string
		status    int
		want      string
	}{
		{other + "/missing", 500, "answered with status 404"},
		{other + "/cut", 500, "unexpected EOF"},
		{other + "/empty", 200, ""},
		{"http://169.254.169.254/", 400, "artifacts.network.allowedAddresses"},
		{"http://127.0.0.2/", 400, "are denied"},
		{"ftp://x/", 400, "Malformed URL"},
	} {
		response, body, err := fetchFile(t, api, tt.reference)
		if err != nil || response.StatusCode != tt.status || !strings.Contains(string(body), tt.want) {
			t.Errorf("%s: got %v, %v: %s, want %d with %q", tt.reference, response, err, body, tt.status, tt.want)
		}
	}
}

func TestArtifactNamesAndVersionsAreListed(t *testing.T) {
	api := serve(t, clouddriver.Config{Store: readtest.New(t).Store, Artifacts: newArtifactAccounts(serveRepository(t))})
	for _, tt := range []struct {
		path   string
		status int
		want   string
	}{
		{"/artifacts/account/charts/names?type=helm/chart", 200, `["web"]`},
		{"/artifacts/account/charts/names?type=helm%2Fchart", 200, `["web"]`},
		{"/artifacts/account/charts/versions?type=helm/chart&artifactName=web", 200, `["1.0.0","2.0.0"]`},
		{"/artifacts/account/charts/versions?type=helm/chart&artifactName=other", 400, "Could not find correct entry with artifact name other"},
		{"/artifacts/account/charts/versions?type=helm/chart", 400, "Required request parameter 'artifactName'"},
		{"/artifacts/account/charts/names", 400, "Required request parameter 'type'"},
		{"/artifacts/account/other/names?type=helm/chart", 404, ""},
		{"/artifacts/account/charts/names?type=", 404, ""},
		{"/artifacts/account//names?type=helm/chart", 400, "An artifact account must be supplied"},
		{"/artifacts/account/docker-registry/names?type=docker/image", 500, "Artifact names are not supported"},
		{"/artifacts/content-address/shop/abc", 200, `{"reference":"Y29udGVudA=="}`},
		{"/artifacts/content-address/shop/missing", 404, "does not have it"},
		{"/artifacts/content-address/..%2Fshop/abc", 400, "ref://APPLICATION/HASH"},
	} {
		response, body := get(t, api+tt.path)
		if got := strings.TrimSpace(string(body)); response.StatusCode != tt.status || !strings.Contains(got, tt.want) || tt.want == "" && got != "" {
			t.Errorf("%s: got %d: %s, want %d: %s", tt.path, response.StatusCode, got, tt.status, tt.want)
		}
	}
}
