package applications

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/manifest"
)

// rawResourceFilter decides which kinds of an account the view of raw resources shows.
type rawResourceFilter struct {
	source           string // the account's settings, encoded
	kinds, omit      []string
	include, exclude []*regexp.Regexp
}

func newRawResourceFilter(source string, p vedette.Properties) *rawResourceFilter {
	var config struct{ KindExpressions, OmitKindExpressions []string }
	_ = json.Unmarshal(p.RawResourceExpressions, &config) // agents encode it; anything else has no expressions
	return &rawResourceFilter{source: source, kinds: p.Kinds, omit: p.OmitKinds, include: compileExpressions(config.KindExpressions),
		exclude: compileExpressions(config.OmitKindExpressions)}
}

// compileExpressions makes each expression match whole texts. One that is invalid matches nothing,
// for example one that uses what only Java has: it must not hide an account's other kinds.
func compileExpressions(expressions []string) []*regexp.Regexp {
	var compiled []*regexp.Regexp
	for _, e := range expressions {
		if r, err := regexp.Compile(`^(?:` + e + `)$`); err == nil {
			compiled = append(compiled, r)
		}
	}
	return compiled
}

// shows applies Clouddriver's rules in its order: the account's kinds, its omitted kinds, and then
// the expressions.
func (f *rawResourceFilter) shows(kind vedette.Kind) bool {
	name := manifest.KindName(kind)
	isKind := func(configured string) bool {
		return strings.EqualFold(manifest.KindName(vedette.ParseKind(configured)), name)
	}
	matches := func(r *regexp.Regexp) bool { return r.MatchString(name) }
	switch {
	case len(f.kinds) > 0 && !slices.ContainsFunc(f.kinds, isKind), slices.ContainsFunc(f.omit, isKind):
		return false
	case slices.ContainsFunc(f.include, matches):
		return true
	}
	return !slices.ContainsFunc(f.exclude, matches)
}

// rawResourceFilters keeps the filters of accounts, so that expressions are compiled only when an
// account changes.
type rawResourceFilters struct {
	mu        sync.Mutex
	byAccount map[vedette.AccountName]*rawResourceFilter
}

const maxRawResourceFilters = 20_000

func (f *rawResourceFilters) of(account vedette.AccountName, p vedette.Properties) *rawResourceFilter {
	source := strings.Join(slices.Concat(p.Kinds, []string{""}, p.OmitKinds, []string{"", string(p.RawResourceExpressions)}), "\n")
	f.mu.Lock()
	defer f.mu.Unlock()
	if known := f.byAccount[account]; known != nil && known.source == source {
		return known
	}
	if f.byAccount == nil || len(f.byAccount) > maxRawResourceFilters { // accounts come and go
		f.byAccount = map[vedette.AccountName]*rawResourceFilter{}
	}
	f.byAccount[account] = newRawResourceFilter(source, p)
	return f.byAccount[account]
}
