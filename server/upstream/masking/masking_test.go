package masking

import (
	"io"
	"net/http"
	"testing"

	"github.com/vedette-io/vedette/internal/configfile"
)

// TestOnlyPossibleCredentialsAreHeldBack checks that a body is passed on while it arrives, apart from what may be the beginning of a
// credential.
func TestOnlyPossibleCredentialsAreHeldBack(t *testing.T) {
	c := New("", configfile.Secret{}, map[string]configfile.Secret{"A": configfile.NewSecret("secret-token"), "B": configfile.NewSecret("secret-token-2"),
		"C": configfile.NewSecret("123456789")})
	for _, tt := range []struct {
		text             string
		complete         bool
		wantMasked, rest string
	}{
		{"a text", false, "a text", ""},
		{"a secr", false, "a ", "secr"},
		{"a secr", true, "a secr", ""},
		{"a secret-token", false, "a ", "secret-token"}, // it may be the longer one
		{"a secret-token", true, "a ***", ""},
		{"a secret-token-3", false, "a ***-3", ""},
		{"secret-token-2secret-tokensecret-to", false, "******", "secret-to"},
		{"ssecret-token", true, "s***", ""},
		{"number 123456789", false, "number 123456789", ""},
	} {
		masked, rest := c.split([]byte(tt.text), tt.complete)
		if string(masked) != tt.wantMasked || string(rest) != tt.rest {
			t.Errorf("%q: got %q and %q, want %q and %q", tt.text, masked, rest, tt.wantMasked, tt.rest)
		}
	}
}

// FuzzMask checks that how a body is divided has no effect.
func FuzzMask(f *testing.F) {
	f.Add("secret-token", "a secret-tokensecret-tok", 3)
	f.Fuzz(func(t *testing.T, credential, text string, size int) {
		c := New("", configfile.Secret{}, map[string]configfile.Secret{"A": configfile.NewSecret(credential)})
		size = 1 + max(size, -size)%100
		body := &maskedBody{Credentials: c, body: &piecesReader{[]byte(text), max(size, 1)}, closer: http.NoBody}
		got, err := io.ReadAll(body)
		if err != nil || string(got) != string(c.Mask([]byte(text))) {
			t.Errorf("got %q, %v, want %q", got, err, c.Mask([]byte(text)))
		}
	})
}

// piecesReader reads a text in pieces of a size.
type piecesReader struct {
	text []byte
	size int
}

func (r *piecesReader) Read(p []byte) (int, error) {
	if len(r.text) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.text[:min(r.size, len(r.text))])
	r.text = r.text[n:]
	return n, nil
}
