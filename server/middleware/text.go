// Package middleware holds what both REST APIs do with each request before they handle it.
package middleware

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/textcheck"
)

// RejectFunc writes the response for a rejected request in the error format of an API.
type RejectFunc func(w http.ResponseWriter, r *http.Request, err error)

// headerPrefixes are the prefixes of the headers that we read, in canonical form.
var headerPrefixes = [...]string{"X-Spinnaker-", "X-Vedette-"}

// CheckText rejects requests whose path, query or headers contain text that is not valid in names,
// as textcheck.Name defines it. These texts become names of objects and users throughout the
// server, and a single byte that is not UTF-8 would end an agent's stream. The error is
// vedette.Invalid.
func CheckText(next http.Handler, reject RejectFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := checkText(r); err != nil {
			reject(w, r, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func checkText(r *http.Request) error {
	if err := textcheck.Name(r.URL.Path); err != nil {
		return vedette.Errorf(vedette.Invalid, "the path must not contain %w", err)
	}
	query, err := url.QueryUnescape(r.URL.RawQuery)
	if err == nil {
		_, err = url.ParseQuery(r.URL.RawQuery) // handlers would miss parameters that it cannot read, without an error
	}
	if err != nil {
		return vedette.Errorf(vedette.Invalid, "the query %.200q cannot be read: %w", r.URL.RawQuery, err)
	}
	if err := textcheck.Name(query); err != nil {
		return vedette.Errorf(vedette.Invalid, "the query must not contain %w", err)
	}
	return checkHeaders(r.Header)
}

func checkHeaders(header http.Header) error {
	for name, values := range header {
		if !hasKnownPrefix(name) {
			continue
		}
		for _, value := range values {
			if err := textcheck.Name(value); err != nil {
				return vedette.Errorf(vedette.Invalid, "the header %s must not contain %w", name, err)
			}
		}
	}
	return nil
}

func hasKnownPrefix(name string) bool {
	for _, prefix := range headerPrefixes {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
