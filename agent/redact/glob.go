package redact

import (
	"errors"
	"strings"

	"github.com/vedette-io/vedette"
)

// globs are patterns of names, in lower case. An asterisk stands for any run of
// bytes, slashes included (path.Match would stop at them, and annotations are
// full of them), a question mark for one byte. Case makes no difference: a rule
// for *PASSWORD* that lets db_password pass would be a trap.
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

// globMatch goes back to the last asterisk only, which is enough for globs and
// keeps the worst case at the product of both lengths.
func globMatch(pattern string, name []byte) bool {
	p, n, star, resume := 0, 0, -1, 0
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

// validateGlobs refuses what would silently match nothing or everything: an
// empty pattern, and the parts of other glob languages that ours lacks.
func validateGlobs(setting string, patterns []string) error {
	var errs []error
	for i, p := range patterns {
		switch {
		case strings.TrimSpace(p) == "":
			errs = append(errs, vedette.Errorf(vedette.Invalid,
				"%s, entry %d: the pattern is empty; name what to redact, or remove the entry", setting, i+1))
		case strings.ContainsAny(p, `[]{}\`):
			errs = append(errs, vedette.Errorf(vedette.Invalid,
				"%s, entry %d: the pattern %q uses one of []{}\\; only * (any run) and ? (one character) have a meaning", setting, i+1, p))
		}
	}
	return errors.Join(errs...)
}
