package redact

import (
	"errors"
	"strings"

	"github.com/vedette-io/vedette"
)

// globs are patterns of names, in lower case. An asterisk matches any sequence of bytes,
// including slashes (path.Match does not match these, and annotations have many), and a
// question mark one byte. Case is ignored, because users expect a rule for *PASSWORD* to
// match db_password.
type globs []string

func compileGlobs(patterns []string) globs {
	var out globs
	for _, p := range patterns {
		out = append(out, strings.ToLower(p))
	}
	return out
}

// match reports whether any of the patterns matches the whole name.
func (g globs) match(name []byte) bool {
	for _, pattern := range g {
		if globMatch(pattern, name) {
			return true
		}
	}
	return false
}

// globMatch backtracks only to the last asterisk. That is enough for globs and keeps the
// worst case at the product of both lengths.
func globMatch(pattern string, name []byte) bool {
	p := 0
	n := 0
	star := -1
	resume := 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, resume = p, n
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == lower(name[n])):
			p, n = p+1, n+1
		case star >= 0:
			resume++
			p, n = star+1, resume
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + ('a' - 'A')
	}
	return c
}

// validateGlobs rejects patterns that would silently match nothing or everything: empty
// patterns, and the syntax of other glob languages.
func validateGlobs(setting string, patterns []string) error {
	var errs []error
	for i, p := range patterns {
		switch {
		case strings.TrimSpace(p) == "":
			errs = append(errs, vedette.Errorf(vedette.Invalid,
				"%s, entry %d: the pattern is empty: write a pattern or remove the entry", setting, i+1))
		case strings.ContainsAny(p, `[]{}\`):
			errs = append(errs, vedette.Errorf(vedette.Invalid,
				"%s, entry %d: the pattern %q contains one of []{}\\: use only * (any sequence) and ? (one character)", setting, i+1, p))
		}
	}
	return errors.Join(errs...)
}
