package egress

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// maxRedirects is the limit of OkHttp, which Clouddriver uses, cut to Go's default.
const maxRedirects = 10

// redirectRule returns the rule for the redirects of a request. Each is checked as the first URL
// was, and credentials stay with the host that they were sent to. Go would keep headers like
// Private-Token, and would tell the next host the last URL, which may contain a token.
func redirectRule(r Request) func(*http.Request, []*http.Request) error {
	return func(next *http.Request, earlier []*http.Request) error {
		if r.Sign != nil {
			return http.ErrUseLastResponse
		}
		if len(earlier) > maxRedirects {
			return fmt.Errorf("more than %d redirects", maxRedirects)
		}
		if err := checkURL(Request{URL: next.URL, Check: r.Check}); err != nil {
			return fmt.Errorf("redirect to %s: %w", next.URL.Host, err)
		}
		next.Header.Del("Referer")
		if sameHost(r.URL, next.URL) {
			return nil
		}
		if strings.EqualFold(r.URL.Scheme, "https") && strings.EqualFold(next.URL.Scheme, "http") {
			return errors.New("a redirect leads from https to http")
		}
		for name := range r.Header {
			next.Header.Del(name)
		}
		return nil
	}
}

// sameHost reports whether a redirect stays with the host. A change from http to https does, if
// neither URL names a port.
func sameHost(first, next *url.URL) bool {
	if strings.EqualFold(first.Scheme, next.Scheme) {
		return strings.EqualFold(first.Host, next.Host)
	}
	return strings.EqualFold(next.Scheme, "https") && strings.EqualFold(first.Host, next.Host) && next.Port() == ""
}
