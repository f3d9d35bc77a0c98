package secret_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/secret"
)

func TestReferencesAreParsedAndMasked(t *testing.T) {
	for _, tt := range []struct {
		text, engine string
		isFile       bool
		params       secret.Params
		shown        string
	}{
		{"encrypted:vault!e:secret!p:a/b!k:c", "vault", false, secret.Params{"e": "secret", "p": "a/b", "k": "c"}, ""},
		{"encryptedFile:vault!e:secret!p:a/b!k:c", "vault", true, secret.Params{"e": "secret", "p": "a/b", "k": "c"}, ""},
		{"  encrypted:vault!e:x!p:y!k:z\n", "vault", false, secret.Params{"e": "x", "p": "y", "k": "z"}, "encrypted:vault!e:x!p:y!k:z"},
		{"encrypted:vault!k:a:b!p: c !e:d", "vault", false, secret.Params{"k": "a:b", "p": "c", "e": "d"}, ""},
		{"encrypted:noop!hunter2!x:y", "noop", false, nil, "encrypted:noop!***"},
		{"encryptedFile:noop!hunter2", "noop", true, nil, "encryptedFile:noop!***"},
		{"encrypted:noop", "noop", false, nil, "encrypted:noop!***"},
		{"encrypted:Hunter2 is a password", "Hunter2 is a password", false, nil, "encrypted:***"},
	} {
		r, err := secret.Parse(tt.text)
		if err != nil || r.Engine != tt.engine || r.IsFile != tt.isFile {
			t.Errorf("%s: got %+v, %v", tt.text, r, err)
		}
		if shown := r.String(); tt.shown != "" && shown != tt.shown {
			t.Errorf("%s: shown as %s, want %s", tt.text, shown, tt.shown)
		}
		if tt.params == nil {
			continue
		}
		params, err := r.Params([]string{"e", "p", "k"}, nil)
		if err != nil || !maps.Equal(params, tt.params) {
			t.Errorf("%s: got %v, %v, want %v", tt.text, params, err, tt.params)
		}
	}
}

func TestInvalidReferencesAreExplained(t *testing.T) {
	for text, want := range map[string]string{
		"hunter2":                         "must start with encrypted:",
		"encrypted:":                      "names no engine",
		"encrypted:!k:v":                  "names no engine",
		"encrypted:x!e":                   "encrypted:x!e has a part without a colon: write it as encrypted:x!e:…!p:…[!b:…]",
		"encrypted:x!":                    "has a part without a colon",
		"encrypted:x":                     "has a part without a colon",
		"encrypted:x!e:1!p:2!q:3":         "has the parameter q, which x does not have",
		"encrypted:x!e:1!p:2!e:3":         "has the parameter e twice",
		"encrypted:x!e:1":                 "lacks the parameter p",
		"encrypted:x!e:1!p:":              "lacks the parameter p",
		"encrypted:x!e:1!p:2!!":           "has a part without a colon",
		"encrypted:x!" + long + "!p:2!e:": "lacks the parameter e",
	} {
		r, err := secret.Parse(text)
		if err == nil {
			_, err = r.Params([]string{"e", "p"}, []string{"b", strings.TrimSuffix(long, ":x")})
		}
		if vedette.KindOf(err) != vedette.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: got error %v, want %q", text, err, want)
		}
	}
}

var long = strings.Repeat("a", 2000) + ":x"

// FuzzParse checks that any text has an error or a reference that can be shown without the secret of
// engine noop.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"encrypted:vault!e:secret!p:a!k:b", "encryptedFile:noop!hunter2", "encrypted:!!", "encrypted:s3!r:a!b:c:d!f:\xff", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := secret.Parse(text)
		trimmed := strings.TrimSpace(text)
		isReference := strings.HasPrefix(trimmed, "encrypted:") || strings.HasPrefix(trimmed, "encryptedFile:")
		if (err == nil) != (isReference && r.Engine != "") {
			t.Errorf("%q: got %+v, %v", text, r, err)
		}
		if len(r.String()) > 320 {
			t.Errorf("%q is shown with %d bytes", text, len(r.String()))
		}
		if shown := r.String(); r.Engine == "noop" && shown != "encrypted:noop!***" && shown != "encryptedFile:noop!***" {
			t.Errorf("%q is shown as %s", text, r)
		}
		params, err := r.Params([]string{"e", "k"}, []string{"b"})
		if err == nil && (params["e"] == "" || params["k"] == "" || len(params) > 3) {
			t.Errorf("%q: got %v", text, params)
		}
	})
}
