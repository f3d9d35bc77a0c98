package web

import (
	"net/url"
	"testing"
)

// TestRepeatedParametersAreJoined reads parameters that occur twice as Spring does.
func TestRepeatedParametersAreJoined(t *testing.T) {
	for query, want := range map[string]string{"a=x": "x", "": "", "a=": "", "a=x&a=y": "x,y", "a=x,y": "x,y", "A=x": "", "a=&a=x": ",x"} {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		if got := SingleParam(values, "a"); got != want {
			t.Errorf("%s: got %q, want %q", query, got, want)
		}
	}
}
