package client

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/keypair"
)

// TestTokenStaysWithItsServer checks that neither a redirect nor plain HTTP reveals the token.
func TestTokenStaysWithItsServer(t *testing.T) {
	var sent []string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent = append(sent, "other "+r.Header.Get("Authorization"))
		_, _ = w.Write([]byte(`{"version":"v2"}`))
	}))
	defer other.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent = append(sent, "server "+r.Header.Get("Authorization"))
		http.Redirect(w, r, other.URL, http.StatusFound)
	}))
	defer server.Close()
	token := func(context.Context) (string, error) { return "abc", nil }
	c, err := NewWithOptions(Options{Server: server.URL, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	version, err := c.Version(t.Context())
	if got := strings.Join(sent, "|"); err != nil || version != "v2" || got != "server Bearer abc|other " {
		t.Errorf("got %q, %v, and the servers %q", version, err, got)
	}
	for _, tt := range []struct {
		name, want string
		options    Options
	}{
		{"a token without TLS", "a token is not sent without TLS", Options{Server: "vedette.example.com", Token: token}},
		{"an authority without TLS", "begin the address of the server with https://", Options{TLS: keypair.ClientTLS{CAFile: "x"}}},
		{"a key alone", "a key needs its certificate", Options{Server: "https://x", TLS: keypair.ClientTLS{KeyPair: keypair.Files{Key: "x"}}}},
		{"a missing authority", "/no/ca does not exist", Options{Server: "https://x", TLS: keypair.ClientTLS{CAFile: "/no/ca"}}},
	} {
		if err := tt.options.Check(); vedette.KindOf(err) != vedette.Invalid || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
	noToken := func(context.Context) (string, error) { return "", vedette.Errorf(vedette.Invalid, "there is no token") }
	if c, err = NewWithOptions(Options{Server: server.URL, Token: noToken}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Version(t.Context()); vedette.KindOf(err) != vedette.Invalid || err.Error() != "there is no token" {
		t.Errorf("got %v, want the reason only", err)
	}
}
