package s3_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/secret"
	"github.com/vedette-io/vedette/internal/secret/s3"
	"github.com/vedette-io/vedette/internal/secret/secrettest"
)

const file = "db:\n  password: hunter2\n  port: 5432\n"

// newResolver starts a server with the API of S3, and returns a resolver for it.
func newResolver(t *testing.T) *secret.Resolver {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "AKID")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "s3cret")
	backend := s3mem.New()
	if err := backend.CreateBucket("secrets"); err != nil {
		t.Fatal(err)
	}
	if _, err := backend.PutObject("secrets", "spinnaker/db.yml", nil, strings.NewReader(file), int64(len(file)), nil); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(gofakes3.New(backend).Server())
	t.Cleanup(server.Close)
	engine := &s3.Engine{Endpoint: server.URL, Client: secret.NewHTTPClient(http.DefaultTransport.(*http.Transport).Clone())}
	return secret.New(map[string]secret.Engine{"s3": engine}, secret.Timing{})
}

func TestSecretsAreReadFromS3(t *testing.T) {
	l := newResolver(t).Load(t.Context())
	secrettest.ExpectValues(t, l, "", map[string]string{
		"encrypted:s3!r:eu-west-1!b:secrets!f:spinnaker/db.yml!k:db.password": "hunter2",
		"encrypted:s3!r:eu-west-1!b:secrets!f:spinnaker/db.yml!k:db.port":     "5432",
		"encrypted:s3!r:us-east-1!b:secrets!f:spinnaker/db.yml":               file,
	})
	secrettest.ExpectErrors(t, l, "", map[string]struct {
		Kind vedette.ErrorKind
		Text string
	}{
		"encrypted:s3!r:eu-west-1!b:secrets!f:spinnaker/db.yml!k:db.user": {vedette.NotFound, `has no key "db.user"`},
		"encrypted:s3!r:eu-west-1!b:secrets!f:missing.yml!k:x":            {vedette.NotFound, "status 404"},
		"encrypted:s3!r:eu-west-1!b:nobucket!f:db.yml!k:x":                {vedette.NotFound, "status 404"},
		"encrypted:s3!r:eu-west-1!b:secrets":                              {vedette.Invalid, "lacks the parameter f"},
		"encrypted:s3!b:secrets!f:db.yml":                                 {vedette.Invalid, "lacks the parameter r"},
		"encrypted:s3!r:eu-west-1!b:evil/../x!f:db.yml":                   {vedette.Invalid, "not a valid name of a bucket"},
		"encrypted:s3!r:eu-west-1!b:secrets!f:../x":                       {vedette.Invalid, "must not contain the parts"},
	})
}

// TestMissingFile checks that only the service says that there is no file.
func TestMissingFile(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "AKID")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "s3cret")
	secrettest.ExpectNotFound(t, "encrypted:s3!r:eu-west-1!b:secrets!f:x", "<Error><Code>NoSuchKey</Code></Error>", func(server *httptest.Server) secret.Engine {
		server.Start()
		return &s3.Engine{Endpoint: server.URL, Client: secret.NewHTTPClient(http.DefaultTransport.(*http.Transport).Clone())}
	})
}

// TestRequestsAreSigned checks what the server in memory does not: that requests carry a signature for the
// region of the reference.
func TestRequestsAreSigned(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "AKID")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "s3cret")
	var header string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { header = r.Header.Get("Authorization") }))
	defer server.Close()
	engine := &s3.Engine{Endpoint: server.URL, Client: server.Client()}
	if _, err := secret.New(map[string]secret.Engine{"s3": engine}, secret.Timing{}).Load(t.Context()).Resolve("encrypted:s3!r:ap-south-1!b:b!f:f"); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(header, "AWS4-HMAC-SHA256 Credential=AKID/") || !strings.Contains(header, "/ap-south-1/s3/aws4_request") {
		t.Errorf("got the header %q", header)
	}
}
