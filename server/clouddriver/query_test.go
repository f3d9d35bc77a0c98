package clouddriver

import (
	"net/url"
	"testing"
)

// TestSingleParam reads parameters that stand twice as Spring does.
func TestSingleParam(t *testing.T) {
	for query, want := range map[string]string{"a=x": "x", "": "", "a=": "", "a=x&a=y": "x,y", "a=x,y": "x,y", "A=x": "", "a=&a=x": ",x"} {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		if got := singleParam(values, "a"); got != want {
			t.Errorf("%s: got %q, want %q", query, got, want)
		}
	}
}
