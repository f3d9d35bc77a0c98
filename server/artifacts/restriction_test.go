package artifacts_test

import (
	"net/url"
	"regexp"
	"testing"

	"github.com/vedette-io/vedette/server/artifacts"
)

// TestRestrictions checks names of hosts as they can be written.
func TestRestrictions(t *testing.T) {
	pattern := func(expression string) *regexp.Regexp {
		p, err := artifacts.CompilePattern(expression)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	r := &artifacts.Restrictions{AllowedHostnames: pattern(`.*\..+`), ExcludedPatterns: []*regexp.Regexp{pattern(`.*\.(local|spinnaker)`)}, RejectIPs: true}
	for reference, want := range map[string]bool{
		"https://example.com/x": true, "https://EXAMPLE.com./x": true,
		"http://spin-clouddriver.spinnaker:7002/": false, "http://spin-clouddriver.spinnaker.:7002/": false,
		"http://x.svc.cluster.local/": false, "http://x.svc.cluster.LOCAL./": false,
		"http://localhost/": false, "http://localhost./": false, "http://10.0.0.1/": false, "http://[::1]/": false,
	} {
		u, err := url.Parse(reference)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Check(u); (err == nil) != want {
			t.Errorf("%s: got %v, want allowed %t", reference, err, want)
		}
	}
}
