package compare

import (
	"cmp"
	"slices"
	"strings"
)

// itemPair is an item of each of two lists, or of one of them.
type itemPair struct {
	a, b     any
	inA, inB bool
}

// withoutCommon removes what both lists contain.
func withoutCommon(a, b []any) (onlyA, onlyB []any) {
	counts := map[string]int{}
	for _, v := range b {
		counts[canonical(v)]++
	}
	for _, v := range a {
		if c := canonical(v); counts[c] > 0 {
			counts[c]--
			continue
		}
		onlyA = append(onlyA, v)
	}
	for _, v := range b {
		if c := canonical(v); counts[c] > 0 {
			counts[c]--
			onlyB = append(onlyB, v)
		}
	}
	return onlyA, onlyB
}

// pairItems pairs the items of two lists by their identity. Items with the same identity are paired
// in the order of their content. Lists that hold as many values without an identity are paired, too.
func pairItems(a, b []any) []itemPair {
	byIdentity := map[string][2][]any{}
	var order []string
	for side, items := range [][]any{a, b} {
		for _, item := range items {
			id := identity(item)
			sides, known := byIdentity[id]
			if !known {
				order = append(order, id)
			}
			sides[side] = append(sides[side], item)
			byIdentity[id] = sides
		}
	}
	var pairs []itemPair
	for _, id := range order {
		sides := byIdentity[id]
		for _, items := range sides {
			slices.SortFunc(items, func(x, y any) int { return cmp.Compare(canonical(x), canonical(y)) })
		}
		for i := range max(len(sides[0]), len(sides[1])) {
			p := itemPair{inA: i < len(sides[0]), inB: i < len(sides[1])}
			if p.inA {
				p.a = sides[0][i]
			}
			if p.inB {
				p.b = sides[1][i]
			}
			pairs = append(pairs, p)
		}
	}
	return pairs
}

// identifying are the fields that say what an item is about.
var identifying = []string{"account", "location", "region", "namespace", "name", "id", "uid", "serverGroup", "cluster",
	"application", "provider"}

// identity returns a text that is equal for items that are about the same thing, or "".
func identity(v any) string {
	tree, ok := v.(map[string]any)
	if !ok {
		return ""
	}
	var b strings.Builder
	for _, key := range identifying {
		if text, ok := tree[key].(string); ok {
			b.WriteString(key + "=" + text + " ")
		}
	}
	return b.String()
}
