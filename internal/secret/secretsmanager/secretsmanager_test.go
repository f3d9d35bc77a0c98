package secretsmanager_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/secret"
	"github.com/vedette-io/vedette/internal/secret/secretsmanager"
	"github.com/vedette-io/vedette/internal/secret/secrettest"
)

// answers are what the service answers for a secret: a status and a body, as AWS documents them.
var answers = map[string]struct {
	status int
	body   string
}{
	"prod/db":   {200, `{"Name":"prod/db","SecretString":"{\"password\":\"hunter2\",\"port\":5432}"}`},
	"plain":     {200, `{"Name":"plain","SecretString":"hunter3"}`},
	"binary":    {200, `{"Name":"binary","SecretBinary":"aHVudGVyNAD/"}`},
	"empty":     {200, `{"Name":"empty"}`},
	"missing":   {400, `{"__type":"ResourceNotFoundException","Message":"Secrets Manager can't find the specified secret."}`},
	"denied":    {400, `{"__type":"AccessDeniedException","Message":"User is not authorized to perform: secretsmanager:GetSecretValue"}`},
	"throttled": {400, `{"__type":"ThrottlingException","Message":"Rate exceeded"}`},
	"broken":    {500, `{"__type":"InternalServiceError","Message":"An error occurred on the server side."}`},
}

// serve starts a server that answers GetSecretValue. It fails the test if a request has no signature for the
// region eu-west-1.
func serve(t *testing.T) {
	t.Helper()
	serveWith(t, func(w http.ResponseWriter, r *http.Request) {
		var input struct{ SecretId string }
		if err := json.NewDecoder(r.Body).Decode(&input); err != nil {
			t.Error(err)
		}
		if target := r.Header.Get("X-Amz-Target"); target != "secretsmanager.GetSecretValue" {
			t.Errorf("got the target %q", target)
		}
		if signature := r.Header.Get("Authorization"); !strings.Contains(signature, "/eu-west-1/secretsmanager/aws4_request") {
			t.Errorf("got the signature %q", signature)
		}
		answer := answers[input.SecretId]
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		w.WriteHeader(answer.status)
		fmt.Fprint(w, answer.body)
	})
}

// serveWith starts a server that the engine asks instead of AWS, with credentials of its own.
func serveWith(t *testing.T, handle http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	t.Setenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", server.URL)
	t.Setenv("AWS_ACCESS_KEY_ID", "AKID")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "s3cret")
	return server
}

func TestSecretsAreReadFromAWS(t *testing.T) {
	serve(t)
	t.Setenv("TMPDIR", t.TempDir())
	r := secret.New(map[string]secret.Engine{"secrets-manager": &secretsmanager.Engine{}}, secret.Timing{Total: 1})
	defer r.Close()
	l := r.Load(t.Context())
	secrettest.ExpectValues(t, l, "encrypted:secrets-manager!r:eu-west-1!", map[string]string{
		"s:prod/db!k:password": "hunter2", "s:prod/db!k:port": "5432", "s:prod/db": `{"password":"hunter2","port":5432}`,
		"s:plain": "hunter3", "s:binary": "hunter4\x00\xff",
	})
	secrettest.ExpectErrors(t, l, "encrypted:secrets-manager!r:eu-west-1!", map[string]struct {
		Kind vedette.ErrorKind
		Text string
	}{
		"s:prod/db!k:user": {vedette.NotFound, "no key"},
		"s:plain!k:x":      {vedette.Invalid, "not a JSON object"},
		"s:empty":          {vedette.NotFound, "has no value"},
		"s:missing":        {vedette.Invalid, "ResourceNotFoundException"},
		"s:denied":         {vedette.Invalid, "AccessDeniedException"},
		"k:password":       {vedette.Invalid, "lacks the parameter s"},
	})
	if _, err := l.Resolve("encryptedFile:secrets-manager!r:eu-west-1!s:prod/db!k:password"); err == nil || !strings.Contains(err.Error(), "must not have a key") {
		t.Errorf("a file with a key: got error %v", err)
	}
}

// TestTemporaryAnswersAreRetried checks which answers may go away.
func TestTemporaryAnswersAreRetried(t *testing.T) {
	serve(t)
	for _, name := range []string{"throttled", "broken"} {
		r := secret.New(map[string]secret.Engine{"secrets-manager": &secretsmanager.Engine{}}, secret.Timing{Total: 1})
		if _, err := r.Load(t.Context()).Resolve("encrypted:secrets-manager!r:eu-west-1!s:" + name); vedette.KindOf(err) != vedette.Unavailable {
			t.Errorf("%s: got error %v, want that it is retried", name, err)
		}
	}
}

// TestEndlessAnswerIsNotRead checks that an answer without an end is not read into memory.
func TestEndlessAnswerIsNotRead(t *testing.T) {
	sent := 0
	server := serveWith(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		sent = secrettest.WriteEndless(w, `{"SecretString":"`)
	})
	r := secret.New(map[string]secret.Engine{"secrets-manager": &secretsmanager.Engine{}}, secret.Timing{})
	_, err := r.Load(t.Context()).Resolve("encrypted:secrets-manager!r:eu-west-1!s:prod/db")
	server.Close() // waits for the handler
	secrettest.ExpectTooLarge(t, sent, err)
}
