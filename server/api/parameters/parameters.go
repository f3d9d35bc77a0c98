// Package parameters reads the queries of the API's requests. A parameter that does not exist, or has no meaning, is an error, because
// a request would otherwise select more than intended.
package parameters

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/nearest"
)

// Parse parses the query of a request. Unknown parameters are rejected, because a
// misspelt filter would otherwise silently match more than intended. The error names the first of them.
func Parse(r *http.Request, allowed ...string) (url.Values, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "the query %.200q cannot be read: %w", r.URL.RawQuery, err)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
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

// Singles sets fields to the values of parameters that may be given once. The error is about the first of them by name, so that
// the same request gets the same one.
func Singles(values url.Values, fields map[string]*string) (err error) {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if *fields[name], err = Single(values, name); err != nil {
			return err
		}
	}
	return nil
}

// Single returns the value of a parameter that may be given once.
func Single(values url.Values, name string) (string, error) {
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
	MaxKinds    = 100
	// maxValueBytes is longer than any name of an account, and any kind with its group.
	maxValueBytes = 512
)

// List returns the values of a parameter that can be repeated and can contain a
// comma-separated list of up to limit values.
func List(values url.Values, name string, limit int) ([]string, error) {
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

// Enum returns the value of a parameter that accepts only some values.
func Enum(values url.Values, name string, allowed ...string) (string, error) {
	value, err := Single(values, name)
	if err == nil && value != "" && !slices.Contains(allowed, value) {
		err = vedette.Errorf(vedette.Invalid, "invalid %s %.100q: must be %s", name, value, nearest.OneOf(allowed))
	}
	return value, err
}

const maxLimit = 5000

// DefaultLimit is the number of items per page without the parameter limit.
const DefaultLimit = 500

func Limit(values url.Values) (int, error) {
	value, err := Single(values, "limit")
	if err != nil || !values.Has("limit") {
		return 0, err
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > maxLimit {
		return 0, vedette.Errorf(vedette.Invalid, "invalid limit %.100q: must be a number from 1 to %d", value, maxLimit)
	}
	return n, nil
}

// Patterns are the names and patterns that select accounts. Without any, all are selected.
type Patterns struct {
	Texts []string                     // as the request has them
	Names map[vedette.AccountName]bool // those without wildcards
	Globs []Glob                       // those with wildcards
}

// Accounts returns the parameter account.
func Accounts(values url.Values) (Patterns, error) {
	texts, err := List(values, "account", maxAccounts)
	p := newPatterns(texts)
	if err == nil && len(p.Globs) > maxPatterns {
		err = vedette.Errorf(vedette.Invalid, "the parameter account has more than %d patterns: name the accounts, or send several requests", maxPatterns)
	}
	return p, err
}

func newPatterns(texts []string) Patterns {
	p := Patterns{Texts: texts, Names: map[vedette.AccountName]bool{}}
	for _, text := range texts {
		if HasWildcards(text) {
			p.Globs = append(p.Globs, NewGlob(text))
		} else {
			p.Names[vedette.AccountName(text)] = true
		}
	}
	return p
}

func (p Patterns) SelectAll() bool { return len(p.Texts) == 0 }

func (p Patterns) Match(name vedette.AccountName) bool {
	return p.SelectAll() || p.Names[name] || slices.ContainsFunc(p.Globs, func(g Glob) bool { return g.Match(string(name)) })
}

// Glob is a pattern for a whole text: "*" matches any characters, "?" matches one.
type Glob struct {
	pattern string
	minimum int // length of the shortest text that matches
}

func HasWildcards(text string) bool { return strings.ContainsAny(text, "*?") }

func NewGlob(pattern string) Glob {
	return Glob{pattern, len(pattern) - strings.Count(pattern, "*")}
}

// Match takes time in proportion to the square of the text's length, however long the pattern is.
func (g Glob) Match(text string) bool {
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
