// Package nearest says for a name that does not exist which similar ones, or which others, do.
package nearest

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Matches returns up to three candidates, the most similar first: those within an edit or two of
// word, those that begin with word or contain it, and those with which word begins if they are most
// of it. It ignores case.
func Matches(word string, candidates []string) []string {
	type scored struct {
		name  string
		score int
	}
	var found []scored
	word = strings.ToLower(truncate(word))
	for _, c := range candidates {
		if score, ok := distance(word, strings.ToLower(truncate(c))); ok {
			found = append(found, scored{c, score})
		}
	}
	slices.SortFunc(found, func(a, b scored) int { return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(a.name, b.name)) })
	var names []string
	for _, f := range found[:min(3, len(found))] {
		names = append(names, f.name)
	}
	return names
}

// Hint returns ": did you mean a, b or c?", or "" if no candidate is similar.
func Hint(word string, candidates []string) string {
	names := Matches(word, candidates)
	if len(names) == 0 {
		return ""
	}
	return ": did you mean " + OneOf(names) + "?"
}

// OneOf returns "a, b or c".
func OneOf(names []string) string { return join(names, " or ") }

// join separates names by commas, and the last one by a word.
func join(names []string, word string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + word + names[last]
}

// maxListed is how many names List names.
const maxListed = 10

// List returns the first names, and how many more there are: "a, b and c", or "a, b, … and 7 more".
func List(names []string) string {
	if more := len(names) - maxListed; more > 0 {
		return strings.Join(names[:maxListed], ", ") + " and " + strconv.Itoa(more) + " more"
	}
	return join(names, " and ")
}

// ListFor is List for the error about a word that is none of the names. It suggests similar ones if not all are listed.
func ListFor(word string, names []string) string {
	if len(names) <= maxListed {
		return List(names)
	}
	return List(names) + Hint(word, names)
}

// There returns what there is, for the error about a name that does not exist: "there are a, b and c".
func There(names []string, plural string) string {
	switch len(names) {
	case 0:
		return "there are no " + plural
	case 1:
		return "there is " + names[0]
	default:
		return "there are " + List(names)
	}
}

// truncate shortens s, because the time for an edit distance is the product of both lengths.
func truncate(s string) string { return s[:min(len(s), 64)] }

func distance(word, candidate string) (int, bool) {
	if word == "" {
		return 0, false
	}
	edits := editDistance(word, candidate)
	allowed := 1 + len(word)/4
	switch {
	case edits <= allowed:
		return edits, true
	case len(word) >= 3 && strings.HasPrefix(candidate, word):
		return allowed + 1, true
	case len(word) >= 3 && strings.Contains(candidate, word), 2*len(candidate) > len(word) && strings.HasPrefix(word, candidate):
		return allowed + 2, true
	default:
		return 0, false
	}
}

// editDistance returns the number of bytes to insert, delete or replace.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		above := row[0] // the upper left neighbor, before it was overwritten
		row[0] = i + 1
		for j := range len(b) {
			cost := above
			if a[i] != b[j] {
				cost++
			}
			above = row[j+1]
			row[j+1] = min(cost, row[j]+1, above+1)
		}
	}
	return row[len(b)]
}
