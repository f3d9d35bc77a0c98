package textcheck

import "testing"

func TestIsPathSegment(t *testing.T) {
	for text, want := range map[string]bool{
		"dev": true, "dev@example.com": true, `DOMAIN\dev`: true, "cn=dev,ou=a/b": true, "50%": true, "50%25": true, "a..b": true, "...": true, "a;b": true,
		"": false, ".": false, "..": false, "..;x": false, "../admin": false, `dev\..\admin`: false, "dev/..": false, "%2e%2e": false, "%252e%252e": false,
		"dev%2f..%2fadmin": false, ".%2e": false, "%2525252e": false,
	} {
		if got := IsPathSegment(text); got != want {
			t.Errorf("%q: got %t, want %t", text, got, want)
		}
	}
}
