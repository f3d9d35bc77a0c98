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

// parseParameters returns the query of a request. A parameter that the route does
// not know is refused: a filter with a typing error would otherwise show more
// than was asked for, and nobody would notice.
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
			return nil, vedette.Errorf(vedette.Invalid, "there is no parameter %.100q: %s takes none", name, r.URL.Path)
		}
		hint := nearest.Hint(name, allowed)
		if hint == "" {
			hint = ": the parameters are " + strings.Join(allowed, ", ")
		}
		return nil, vedette.Errorf(vedette.Invalid, "there is no parameter %.100q%s", name, hint)
	}
	return values, nil
}

// singleValue returns a parameter that may be given once.
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

// listValues returns the parts of a parameter that may be given several times and
// hold a list each time.
func listValues(values url.Values, name string) []string {
	var parts []string
	for _, value := range values[name] {
		for part := range strings.SplitSeq(value, ",") {
			if part = strings.TrimSpace(part); part != "" {
				parts = append(parts, part)
			}
		}
	}
	return parts
}

// enumValue returns a parameter that takes one of a few words.
func enumValue(values url.Values, name string, allowed ...string) (string, error) {
	value, err := singleValue(values, name)
	if err == nil && value != "" && !slices.Contains(allowed, value) {
		err = vedette.Errorf(vedette.Invalid, "the parameter %s is %.100q and may be %s", name, value, strings.Join(allowed, " or "))
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
		return 0, vedette.Errorf(vedette.Invalid, "the limit is %.100q and must be a number from 1 to %d", value, maxLimit)
	}
	return n, nil
}

// glob matches a whole text: "*" stands for any run of characters, "?" for one.
type glob string

func (g glob) hasWildcards() bool { return strings.ContainsAny(string(g), "*?") }

func (g glob) match(text string) bool {
	pattern := string(g)
	star, resume := -1, 0 // of the last "*": where it stands, and what it took so far
	p, t := 0, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, resume = p, t
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == text[t]):
			p, t = p+1, t+1
		case star >= 0: // let it take one more
			resume++
			p, t = star+1, resume
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}
