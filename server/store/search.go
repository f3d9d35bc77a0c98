package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/vedette-io/vedette"
)

// searchPrefix begins the keys in Clouddriver's cache that are searched.
const searchPrefix = "kubernetes.v2:infrastructure:"

// SearchAttributes returns objects by a part of their keys in Clouddriver's cache. Like the other
// methods that read attributes, it takes one statement, and one more if accounts have changed.
func (s *Store) SearchAttributes(ctx context.Context, q SearchQuery) ([]AttributesRow, error) {
	const action = "search objects"
	if q.Limit < 1 || q.Offset < 0 {
		return nil, vedette.Errorf(vedette.Invalid, "%s: the limit %d or the offset %d is out of range", action, q.Limit, q.Offset)
	}
	scope, err := s.searchScope(ctx, q)
	if err != nil || len(scope.accounts) == 0 || len(scope.kinds) == 0 {
		return nil, s.wrapError(action, err)
	}
	text := strings.ToLower(q.Text)
	if len(text) > maxKey || strings.ContainsRune(text, 0) || !utf8.ValidString(text) {
		return nil, nil // no key contains it
	}
	where, args := conditions{scope.accountCondition, s.dialect.in("m.kind_id", scope.kindIDs()), s.matchKeys(scope, text)}.where()
	return s.readAttributes(ctx, action, attributesQuery{args: args, tables: fmt.Sprintf(
		`(SELECT m.account_id, m.kind_id, m.namespace, m.name FROM objects m%[1]s%[2]s
			ORDER BY m.account_id, m.kind_id, m.namespace, m.name LIMIT %[3]d OFFSET %[4]d) found
		%[5]s objects o%[1]s ON o.account_id = found.account_id AND o.kind_id = found.kind_id AND o.namespace = found.namespace
			AND o.name = found.name`, s.dialect.keyHint, where, q.Limit, q.Offset, s.dialect.orderedJoin),
		order: ` ORDER BY o.account_id, o.kind_id, o.namespace, o.name`})
}

// searchScope are the accounts and kinds that a search covers, with their names as keys have them.
type searchScope struct {
	accounts, kinds []searchName
	// accountCondition does not name the accounts if they are all: PostgreSQL would sort all objects
	// before it stops at the limit.
	accountCondition condition
}

type searchName struct {
	id   int64
	name string // in lower case
}

func (s *Store) searchScope(ctx context.Context, q SearchQuery) (searchScope, error) {
	var scope searchScope
	if len(s.kinds.withoutID(q.Kinds)) > 0 && !s.isOnlyWriter() {
		if err := s.kinds.load(ctx, s); err != nil {
			return scope, err
		}
	}
	for id, kind := range s.kinds.cached() {
		if len(q.Kinds) > 0 && !slices.Contains(q.Kinds, kind) {
			continue
		}
		name := kind.Name
		if !vedette.IsNativeGroup(kind.Group) {
			name += "." + kind.Group
		}
		scope.kinds = append(scope.kinds, searchName{id, strings.ToLower(name)})
	}
	names, err := s.accountNames(ctx)
	if err != nil {
		return scope, err
	}
	ids := names.ids(q.Accounts)
	for _, id := range ids {
		scope.accounts = append(scope.accounts, searchName{id, strings.ToLower(string(names.visible[id]))})
	}
	scope.accountCondition = s.dialect.in("m.account_id", ids)
	if len(q.Accounts) == 0 {
		scope.accountCondition = s.dialect.notIn("m.account_id", names.hidden)
	}
	return scope, nil
}

func idsOfNames(names []searchName) []int64 {
	ids := make([]int64, len(names))
	for i, n := range names {
		ids[i] = n.id
	}
	slices.Sort(ids)
	return ids
}

func (c searchScope) kindIDs() []int64 { return idsOfNames(c.kinds) }

// maxKey is the length of the longest key.
const maxKey = len(searchPrefix) + 3*maxShort + maxNamespace + maxName + 4

// objectKey is the part of a key that differs between the objects of an account and kind.
const objectKey = `LOWER(CONCAT(m.namespace, ':', m.name))`

// matchKeys returns the condition that an object's key contains a text. The part of a key before
// the namespace is the same for all objects of an account and kind. So it is compared here: either
// it contains the text, or the text begins in it and ends in the rest, or the rest contains the
// text.
func (s *Store) matchKeys(scope searchScope, text string) condition {
	matches := []condition{{objectKey + ` LIKE ? ESCAPE '!'`, []any{"%" + escapeLike(text) + "%"}}}
	matches = append(matches, s.prefixConditions(scope, func(prefix string) bool { return strings.Contains(prefix, text) })...)
	colons := scope.maxColons()
	for i := 0; i < len(text) && colons > 0; i++ {
		if text[i] != ':' {
			continue
		}
		colons--
		begin, rest := text[:i+1], escapeLike(text[i+1:])+"%"
		for _, c := range s.prefixConditions(scope, func(prefix string) bool { return strings.HasSuffix(prefix, begin) }) {
			matches = append(matches, condition{c.sql + " AND " + objectKey + ` LIKE ? ESCAPE '!'`, append(c.args, rest)})
		}
	}
	return anyOf(matches)
}

// maxColons returns how many colons the part before the namespace has at most.
func (c searchScope) maxColons() int {
	n := 0
	for _, names := range [][]searchName{c.accounts, c.kinds} {
		most := 0
		for _, name := range names {
			most = max(most, strings.Count(name.name, ":"))
		}
		n += most
	}
	return n + strings.Count(searchPrefix, ":") + 2
}

// prefixConditions returns conditions for the accounts and kinds for which the part of the key
// before the namespace matches. Kinds for which the same accounts match share a condition.
func (s *Store) prefixConditions(scope searchScope, match func(prefix string) bool) []condition {
	type group struct{ accounts, kinds []int64 }
	var groups []group
	for _, kind := range scope.kinds {
		var accounts []int64
		for _, account := range scope.accounts {
			if match(searchPrefix + kind.name + ":" + account.name + ":") {
				accounts = append(accounts, account.id)
			}
		}
		if len(accounts) == 0 {
			continue
		}
		i := slices.IndexFunc(groups, func(g group) bool { return slices.Equal(g.accounts, accounts) })
		if i < 0 {
			i, groups = len(groups), append(groups, group{accounts: accounts})
		}
		groups[i].kinds = append(groups[i].kinds, kind.id)
	}
	var out []condition
	for _, g := range groups {
		c := s.dialect.in("m.kind_id", g.kinds)
		if len(g.accounts) < len(scope.accounts) {
			in := s.dialect.in("m.account_id", g.accounts)
			c = condition{c.sql + " AND " + in.sql, append(c.args, in.args...)}
		}
		out = append(out, c)
	}
	return out
}

// anyOf returns the condition that one of several is met.
func anyOf(all []condition) condition {
	parts := make([]string, len(all))
	var args []any
	for i, c := range all {
		parts[i] = "(" + c.sql + ")"
		args = append(args, c.args...)
	}
	return condition{"(" + strings.Join(parts, " OR ") + ")", args}
}

// escapeLike escapes the characters that mean others in a LIKE pattern with the escape character
// "!".
func escapeLike(text string) string {
	return strings.NewReplacer("!", "!!", "%", "!%", "_", "!_").Replace(text)
}
