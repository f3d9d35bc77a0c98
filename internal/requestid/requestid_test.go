package requestid

import (
	"net/http"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/internal/logging"
)

func TestHostileIDsAreInvalid(t *testing.T) {
	for _, id := range []string{"01JD3ZS0V1X1W6C2M8Q4N7T5BE", "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "a", "user@host:a/b+c=_.", strings.Repeat("x", MaxBytes), New()} {
		if !IsValid(id) {
			t.Errorf("%q is not valid", id)
		}
	}
	for _, id := range []string{"", strings.Repeat("x", MaxBytes+1), "a b", "a\nlevel=ERROR", "a\"b", "é", "a\xffb", "a\x00"} {
		if IsValid(id) {
			t.Errorf("%q is valid", id)
		}
	}
}

// TestInheritedIDIsLogged checks that an id is in the lines of its context and of those that inherit it.
func TestInheritedIDIsLogged(t *testing.T) {
	var out strings.Builder
	log, err := logging.New(logging.Config{}, &out, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx := With(t.Context(), "r1")
	background := Inherit(t.Context(), ctx)
	log.InfoContext(background, "kept")
	log.InfoContext(With(t.Context(), "a\nb"), "without")
	log.InfoContext(Inherit(t.Context(), t.Context()), "without")
	if Of(background) != "r1" || Of(t.Context()) != "" {
		t.Errorf("got ids %q and %q", Of(background), Of(t.Context()))
	}
	if got := out.String(); !strings.Contains(got, "msg=kept request=r1\n") || strings.Count(got, "request=") != 1 {
		t.Errorf("got %s", got)
	}
}

func TestHeaderCarriesTheIDOnce(t *testing.T) {
	header := http.Header{"X-Request-Id": {"of the caller"}}
	SetHeader(t.Context(), header)
	if got := header.Get(Header); got != "of the caller" {
		t.Errorf("without an id: got %q, want no change", got)
	}
	SetHeader(With(t.Context(), "r1"), header)
	if got := header.Values(Header); len(got) != 1 || got[0] != "r1" {
		t.Errorf("got %q, want r1", got)
	}
}
