package request

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/manifest"
)

// FuzzWarnings checks that no header causes a panic, and that the warnings are limited, valid UTF-8,
// on one line, and without secret values.
func FuzzWarnings(f *testing.F) {
	for _, seed := range []string{`299 - "text"`, `299 - "a \" b \\" "Thu, 01 Jan 1970 00:00:00 GMT", 299 proxy "c"`, `110 - "stale"`, `299 - ""`, `299 - "open`,
		`299  "two spaces"`, `299 - "=?utf-8?q?caf=C3=A9?="`, "299 - \"\xff\"", "299 - \"a\nb\"", `299 - "a" 299 - "b"`, ",", `299 - "a",,299 - "b"`} {
		f.Add(seed, 1, "tex")
	}
	f.Add(`299 - "`+strings.Repeat("x", 5<<10)+`"`, 4, "xxxx")
	f.Add(`299 - "`+strings.Repeat("x", 250)+`éè"`, 90, "\xa9\xc3\xa8\n")
	f.Add(`299 - "aéèü"`, 1, "\xa9\xc3\xa8\xc3")
	f.Fuzz(func(t *testing.T, header string, times int, value string) {
		r := new(Client).NewSender(vedette.Operation{}, Control{})
		for i := range max(0, min(times, 150)) {
			r.Warnings.addHeader(http.Header{"Warning": {header, strconv.Itoa(i%90) + header, `299 - "` + strconv.Itoa(i) + header + `"`}})
		}
		if len(value) < 3 || !utf8.ValidString(value) || strings.Contains(truncationNotice, value) || strings.Contains(value, "*") || strings.Contains(value, "\uFFFD") {
			value = "not in any header"
		}
		if err := r.MaskPatchValues(Path{Resource: vedette.Resource{Kind: secretKind}}, manifest.Manifest{Object: object{"data": value}}.Encode(), nil); err != nil {
			t.Error(err)
		}
		warnings, size := r.Warnings.List(), 0
		for i, text := range warnings {
			size += len(text)
			if text == "" || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) || strings.Contains(text, value) || slices.Contains(warnings[:i], text) {
				t.Errorf("got warning %q", text)
			}
		}
		if len(warnings) > maxWarnings+1 || size > maxWarningBytes+len(truncationNotice) {
			t.Errorf("got %d warnings of %d bytes", len(warnings), size)
		}
	})
}

// TestNoticeReplacesTooManyWarnings checks the notice that replaces warnings above the limits.
func TestNoticeReplacesTooManyWarnings(t *testing.T) {
	collect := func(texts ...string) []string {
		r := new(Client).NewSender(vedette.Operation{}, Control{})
		for _, text := range texts {
			r.Warnings.addHeader(http.Header{"Warning": {`299 - "` + text + `"`}})
		}
		r.Warnings.rewrite(func(texts []string) []string {
			for i, text := range texts {
				texts[i] = strings.ReplaceAll(text, "x", "y")
			}
			return texts
		})
		return r.Warnings.List()
	}
	var many []string
	for i := range maxWarnings {
		many = append(many, strconv.Itoa(i))
	}
	if warnings := collect(append(many, many...)...); !slices.Equal(warnings, many) {
		t.Errorf("as many as allowed: got %q", warnings)
	}
	if warnings := collect(append(many, "one more", "2", "and another")...); !slices.Equal(warnings, append(many, truncationNotice)) {
		t.Errorf("one more than allowed: got %q", warnings)
	}
	half := strings.Repeat("a", maxWarningBytes/2)
	for _, tt := range []struct{ texts, want []string }{
		{[]string{half, half[1:] + "b"}, []string{half, half[1:] + "b"}},
		{[]string{half, half + "b", "c"}, []string{half, truncationNotice}},
		{[]string{half + half + "b"}, []string{truncationNotice}},
		{[]string{"x", "y"}, []string{"y"}},
	} {
		if warnings := collect(tt.texts...); !slices.Equal(warnings, tt.want) {
			t.Errorf("of %.20q: got %.20q", tt.texts, warnings)
		}
	}
}

// TestMaskOfUnreadablePatch checks that texts are withheld if the values in a patch cannot be read.
func TestMaskOfUnreadablePatch(t *testing.T) {
	r := new(Client).NewSender(vedette.Operation{}, Control{})
	r.Warnings.addHeader(http.Header{"Warning": {`299 - "it is hunter2"`, `299 - "it was hunter1"`}})
	patch := []byte(`[{"op":"add","path":"/data/p","value":"hunter2"},{"op":"add","path":"/n","value":1e}]`)
	if err := r.MaskPatchValues(Path{Resource: vedette.Resource{Kind: secretKind}}, patch, nil); err != nil {
		t.Error(err)
	}
	err := r.MaskPatchValues(Path{Resource: vedette.Resource{Kind: secretKind}}, patch, &StatusError{Status: 422, Message: "hunter2 is too short"})
	if warnings := r.Warnings.List(); err == nil || strings.Contains(err.Error(), "hunter") || len(warnings) != 1 || strings.Contains(warnings[0], "hunter") {
		t.Errorf("got %v, %q", err, warnings)
	}
}
