package api

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/nearest"
)

// parseParameters parses the query of a request. Unknown parameters are rejected, because a
// misspelt filter would otherwise silently match more than intended.
func parseParameters(r *http.Request, allowed ...string) (url.Values, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "the query %.200q cannot be read: %w", r.URL.RawQuery, err)
	}
	for name := range values {
		if slices.Contains(allowed, name) {
			continue
		}
		if len(allowed) == 0 {
			return nil, vedette.Errorf(vedette.Invalid, "unknown parameter %.100q: %s has no parameters", name, r.URL.Path)
		}
		hint := nearest.Hint(name, allowed)
		if hint == "" {
			hint = ": use one of " + strings.Join(allowed, ", ")
		}
		return nil, vedette.Errorf(vedette.Invalid, "unknown parameter %.100q%s", name, hint)
	}
	return values, nil
}

// singleValue returns the value of a parameter that may be given once.
func singleValue(values url.Values, name string) (string, error) {
	switch all := values[name]; len(all) {
	case 0:
		return "", nil
	case 1:
		return all[0], nil
	default:
		return "", vedette.Errorf(vedette.Invalid, "the parameter %s is given %d times: give it once", name, len(all))
	}
}

// listValues returns the values of a parameter that can be repeated and can contain a
// comma-separated list.
func listValues(values url.Values, name string) []string {
	var parts []string
	for _, value := range values[name] {
		for part := range strings.SplitSeq(value, ",") {
			part = strings.TrimSpace(part)
			if part != "" {
				parts = append(parts, part)
			}
		}
	}
	return parts
}

// enumValue returns the value of a parameter that accepts only some values.
func enumValue(values url.Values, name string, allowed ...string) (string, error) {
	value, err := singleValue(values, name)
	if err == nil && value != "" && !slices.Contains(allowed, value) {
		err = vedette.Errorf(vedette.Invalid, "invalid %s %.100q: must be %s", name, value, strings.Join(allowed, " or "))
	}
	return value, err
}

const maxLimit = 5000

func parseLimit(values url.Values) (int, error) {
	value, err := singleValue(values, "limit")
	if err != nil || !values.Has("limit") {
		return 0, err
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > maxLimit {
		return 0, vedette.Errorf(vedette.Invalid, "invalid limit %.100q: must be a number from 1 to %d", value, maxLimit)
	}
	return n, nil
}

// glob is a pattern for a whole text: "*" matches any characters, "?" matches one.
type glob string

func (g glob) hasWildcards() bool { return strings.ContainsAny(string(g), "*?") }

func (g glob) match(text string) bool {
	pattern := string(g)
	star, resume := -1, 0 // position of the last "*", and of the text after its match
	p, t := 0, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, resume = p, t
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == text[t]):
			p, t = p+1, t+1
		case star >= 0: // extend the match of "*" by one
			resume++
			p, t = star+1, resume
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}
