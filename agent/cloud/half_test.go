package cloud_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

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

// TestPartsOfSTSAreNeeded leaves out each part of an answer of STS.
func TestPartsOfSTSAreNeeded(t *testing.T) {
	s := startServices(t)
	source := eachCloud(t, s)[cloudtest.HostSTS]
	whole, answer := recorded(t, s, cloudtest.HostSTS, source)
	for _, part := range []string{"AccessKeyId", "SecretAccessKey", "SessionToken", "Credentials"} {
		for _, instead := range []string{"", "<" + part + "></" + part + ">"} {
			body := regexp.MustCompile("<"+part+">.*</"+part+">").ReplaceAllString(string(whole), instead)
			s.Answer(cloudtest.HostSTS, answer([]byte(body)))
			_, err := source.Token(t.Context())
			expectError(t, "without "+part, err, "issued no token", "docs/cloud-eks.md")
		}
	}
	body := regexp.MustCompile("<Expiration>.*</Expiration>").ReplaceAllString(string(whole), "")
	s.Answer(cloudtest.HostSTS, answer([]byte(body)))
	token, err := source.Token(t.Context())
	if left := time.Until(token.Expires); err != nil || left > 15*time.Minute || left < time.Minute {
		t.Errorf("without an end of the credentials: got a token for %v, %v, want one for as long as EKS accepts it", left, err)
	}
}

// TestAuthoritiesMayBeWrittenOtherwise checks that Entra ID's answers are believed whose host differs only in how it is written.
func TestAuthoritiesMayBeWrittenOtherwise(t *testing.T) {
	s := startServices(t)
	eachCloud(t, s)
	for _, authority := range []string{"https://LOGIN.microsoftonline.com/", "https://login.microsoftonline.com:443/", "https://login.microsoftonline.com./"} {
		source := newSource(t, cloud.Cluster{Provider: "aks", AKS: cloud.AKS{Login: "workloadidentity", AuthorityHost: authority}}, cloud.Google{})
		if _, err := source.Token(t.Context()); err != nil {
			t.Errorf("%s: %v", authority, err)
		}
	}
}
