package middleware

import (
	"net/http"
	"net/url"
	"strings"
)

// LiteralSemicolons returns a request whose query has its semicolons escaped. Clouddriver's server
// takes a semicolon in a parameter as text. Package net/url leaves out the whole parameter without
// an error, so that a list of some clusters would be the list of all.
func LiteralSemicolons(r *http.Request) *http.Request {
	if !strings.Contains(r.URL.RawQuery, ";") {
		return r
	}
	escaped := r.WithContext(r.Context())
	u := *r.URL
	u.RawQuery = strings.ReplaceAll(u.RawQuery, ";", url.QueryEscape(";"))
	escaped.URL = &u
	return escaped
}
