package etag_test

import (
	"net/http/httptest"
	"testing"

	"github.com/vedette-io/vedette/internal/etag"
)

func TestSameTagIsNotSentAgain(t *testing.T) {
	for _, tt := range []struct {
		name, header string
		want         int
	}{
		{"no tag", "", 200},
		{"same tag", `W/"2a"`, 304},
		{"same tag, strong", `"2a"`, 304},
		{"one of several", `"1", W/"2a" , "3"`, 304},
		{"any tag", "*", 304},
		{"another tag", `W/"2b"`, 200},
		{"tag without quotes", "2a", 200},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("If-None-Match", tt.header)
		w := httptest.NewRecorder()
		etag.Write(w, r, []byte("{}"), 42)
		if w.Code != tt.want || w.Header().Get("ETag") != `W/"2a"` || (w.Body.Len() == 0) != (tt.want == 304) {
			t.Errorf("%s: got %d %v %q, want %d", tt.name, w.Code, w.Header(), w.Body, tt.want)
		}
	}
}
