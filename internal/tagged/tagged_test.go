package tagged_test

import (
	"net/http/httptest"
	"testing"

	"github.com/vedette-io/vedette/internal/tagged"
)

func TestWrite(t *testing.T) {
	for _, tt := range []struct {
		why, header string
		want        int
	}{
		{"nothing is known", "", 200},
		{"the same is known", `W/"2a"`, 304},
		{"a strong tag means the same", `"2a"`, 304},
		{"one of several", `"1", W/"2a" , "3"`, 304},
		{"anything will do", "*", 304},
		{"another is known", `W/"2b"`, 200},
		{"a tag without quotes is none", "2a", 200},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("If-None-Match", tt.header)
		w := httptest.NewRecorder()
		tagged.Write(w, r, []byte("{}"), 42)
		if w.Code != tt.want || w.Header().Get("ETag") != `W/"2a"` || (w.Body.Len() == 0) != (tt.want == 304) {
			t.Errorf("%s: %d %v %q, want %d", tt.why, w.Code, w.Header(), w.Body, tt.want)
		}
	}
}
