package cloud_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/agent/cloud"
	"github.com/vedette-io/vedette/agent/cloud/cloudtest"
)

// recorded returns what the service at a host answers with a token.
func recorded(t *testing.T, s *cloudtest.Services, host string, source *cloud.Source) (whole []byte, answer func(body []byte) http.HandlerFunc) {
	t.Helper()
	isToken := func(r *http.Request) bool { return r.Method == http.MethodPost || host == cloudtest.HostMetadata }
	var contentType string
	s.Answer(host, func(w http.ResponseWriter, r *http.Request) {
		got := httptest.NewRecorder()
		s.Usual(got, r)
		if isToken(r) {
			whole, contentType = bytes.Clone(got.Body.Bytes()), got.Header().Get("Content-Type")
		}
		for name, values := range got.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(got.Code)
		_, _ = w.Write(got.Body.Bytes())
	})
	if _, err := source.Token(t.Context()); err != nil {
		t.Fatalf("%s: %v", host, err)
	}
	return whole, func(body []byte) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if !isToken(r) {
				s.Usual(w, r)
				return
			}
			w.Header().Set("Content-Type", contentType)
			w.Header().Set("Metadata-Flavor", "Google")
			_, _ = w.Write(body)
		}
	}
}

// TestHalfAnswersAreNoTokens cuts the answer of each token service at each byte, as a connection does whose length nobody knows, and adds to it.
func TestHalfAnswersAreNoTokens(t *testing.T) {
	s := startServices(t)
	sources := eachCloud(t, s)
	sources[cloudtest.HostMetadata] = newSource(t, cloud.Cluster{Provider: "gke"}, cloud.Google{})
	for host, source := range sources {
		whole, answer := recorded(t, s, host, source)
		if len(whole) < 50 {
			t.Fatalf("%s: the answer is %q", host, whole)
		}
		for i := range bytes.TrimSpace(whole) {
			s.Answer(host, answer(whole[:i]))
			if token, err := source.Token(t.Context()); err == nil {
				t.Errorf("%s: %q is a whole answer, with the token %.20s… until %v", host, whole[:i], token.Value, token.Expires)
			}
		}
		for _, more := range []string{string(whole), "{}", "<a/>", "x"} {
			s.Answer(host, answer([]byte(string(whole)+more)))
			if _, err := source.Token(t.Context()); err == nil {
				t.Errorf("%s: an answer with %.20q behind it is believed", host, more)
			}
		}
		s.Answer(host, answer([]byte(strings.TrimSpace(string(whole))+"\n \n")))
		if _, err := source.Token(t.Context()); err != nil {
			t.Errorf("%s: an answer with a line behind it: %v", host, err)
		}
		s.Answer(host, nil)
	}
}
