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

// Limits of parameters that are lists. Each value costs a search among all accounts or kinds.
const (
	maxAccounts = 1000
	maxPatterns = 20 // of the accounts, those with wildcards
	maxKinds    = 100
	// maxValueBytes is longer than any name of an account, and any kind with its group.
	maxValueBytes = 512
)

// listValues returns the values of a parameter that can be repeated and can contain a
// comma-separated list of up to limit values.
func listValues(values url.Values, name string, limit int) ([]string, error) {
	var parts []string
	for _, value := range values[name] {
		for part := range strings.SplitSeq(value, ",") {
			part = strings.TrimSpace(part)
			switch {
			case len(part) > maxValueBytes:
				return nil, vedette.Errorf(vedette.Invalid, "a value of the parameter %s has %d bytes: no name has more than %d", name, len(part), maxValueBytes)
			case part != "" && len(parts) == limit:
				return nil, vedette.Errorf(vedette.Invalid, "the parameter %s has more than %d values: send several requests, or leave it out to select all", name, limit)
			case part != "":
				parts = append(parts, part)
			}
		}
	}
	return parts, nil
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

// accountPatterns are the names and patterns that select accounts. Without any, all are selected.
type accountPatterns struct {
	texts []string                     // as the request has them
	names map[vedette.AccountName]bool // those without wildcards
	globs []glob                       // those with wildcards
}

// parseAccounts returns the parameter account.
func parseAccounts(values url.Values) (accountPatterns, error) {
	texts, err := listValues(values, "account", maxAccounts)
	p := newAccountPatterns(texts)
	if err == nil && len(p.globs) > maxPatterns {
		err = vedette.Errorf(vedette.Invalid, "the parameter account has more than %d patterns: name the accounts, or send several requests", maxPatterns)
	}
	return p, err
}

func newAccountPatterns(texts []string) accountPatterns {
	p := accountPatterns{texts: texts, names: map[vedette.AccountName]bool{}}
	for _, text := range texts {
		if hasWildcards(text) {
			p.globs = append(p.globs, newGlob(text))
		} else {
			p.names[vedette.AccountName(text)] = true
		}
	}
	return p
}

func (p accountPatterns) selectAll() bool { return len(p.texts) == 0 }

func (p accountPatterns) match(name vedette.AccountName) bool {
	return p.selectAll() || p.names[name] || slices.ContainsFunc(p.globs, func(g glob) bool { return g.match(string(name)) })
}

// glob is a pattern for a whole text: "*" matches any characters, "?" matches one.
type glob struct {
	pattern string
	minimum int // length of the shortest text that matches
}

func hasWildcards(text string) bool { return strings.ContainsAny(text, "*?") }

func newGlob(pattern string) glob {
	return glob{pattern, len(pattern) - strings.Count(pattern, "*")}
}

// match takes time in proportion to the square of the text's length, however long the pattern is.
func (g glob) match(text string) bool {
	if len(text) < g.minimum {
		return false
	}
	pattern := g.pattern
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
