package artifacts

import (
	"net/url"
	"testing"
)

// TestHostnamesAreRestrictedInEachForm checks names of hosts as they can be written.
func TestHostnamesAreRestrictedInEachForm(t *testing.T) {
	r := (&URLRestrictions{AllowedHostnamesRegex: `.*\..+`, ExtraExcludedPatterns: []string{`.*\.(local|spinnaker)`}, RejectVerbatimIPs: true}).compile()
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
