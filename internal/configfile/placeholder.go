package configfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

const (
	maxExpansions = 10_000  // placeholders in one value
	maxExpanded   = 1 << 20 // bytes of an expanded value

	maxTotalExpansions = 500_000  // placeholders in all values together
	maxTotalExpanded   = 64 << 20 // bytes of all expanded values and of the placeholders in them
	maxShownName       = 100      // bytes of the name of a placeholder in a message
)

// expansionBudget is what remains for the placeholders of all values together: each of many values may
// refer to one that is large.
type expansionBudget struct{ placeholders, bytes int }

func newExpansionBudget() *expansionBudget {
	return &expansionBudget{maxTotalExpansions, maxTotalExpanded}
}

// spend takes a placeholder, or a value, with its bytes out of the budget.
func (b *expansionBudget) spend(placeholders, bytes int) error {
	b.placeholders -= placeholders
	b.bytes -= bytes
	if b.placeholders < 0 {
		return fmt.Errorf("the configuration expands more than %d placeholders", maxTotalExpansions)
	}
	if b.bytes < 0 {
		return fmt.Errorf("the placeholders of the configuration expand to more than %d MiB", maxTotalExpanded>>20)
	}
	return nil
}

// expander expands ${name:default}. The name is looked up as a path in the files, then as an
// environment variable. If neither exists, the default is used, which ends at the closing brace and
// may contain colons and placeholders. Values from files are expanded too, values from the
// environment are not.
type expander struct {
	roots     []*node // later ones override
	env       func(string) (string, bool)
	remaining int
	total     *expansionBudget
	resolving []string // names whose expansion is in progress
	secrets   func(reference string) (string, error)
	found     []string // secrets that are in the text
}

func (e *expander) expand(text string) (string, error) {
	var out strings.Builder
	for {
		before, after, found := strings.Cut(text, "${")
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		if err := e.total.spend(0, 0); err != nil {
			return "", err
		}
		length := closingBrace(after)
		if length < 0 {
			return "", errors.New("a ${ has no closing }")
		}
		if err := e.total.spend(1, length); err != nil { // nested ones are read once for each level
			return "", err
		}
		value, err := e.resolvePlaceholder(after[:length])
		if err == nil {
			err = e.total.spend(0, len(value))
		}
		if err != nil {
			return "", err
		}
		if out.Len()+len(value) > maxExpanded {
			return "", fmt.Errorf("its placeholders expand to more than %d MiB", maxExpanded>>20)
		}
		out.WriteString(value)
		text = after[length+1:]
	}
}

// shownName returns the name of a placeholder for a message. Aliases can repeat a long one many times.
func shownName(name string) string {
	if len(name) > maxShownName {
		name = strings.ToValidUTF8(name[:maxShownName], "") + "…"
	}
	return printable(name)
}

// closingBrace returns the index of the brace that ends a placeholder, or -1.
func closingBrace(text string) int {
	depth := 1
	for i := range len(text) {
		switch {
		case text[i] == '{' && i > 0 && text[i-1] == '$':
			depth++
		case text[i] == '}':
			depth--
			if depth == 0 {
				return i
			}
		}
	}
	return -1
}

// resolvePlaceholder returns the value for the text between the braces.
func (e *expander) resolvePlaceholder(inner string) (string, error) {
	e.remaining--
	if e.remaining < 0 {
		return "", fmt.Errorf("it expands more than %d placeholders", maxExpansions)
	}
	name, defaultText, hasDefault := cutDefault(inner)
	name, err := e.expand(name)
	if err != nil {
		return "", err
	}
	for _, root := range slices.Backward(e.roots) {
		if n := root.lookup(name); n != nil {
			return e.resolveReference(name, n)
		}
	}
	if value, ok := e.env(name); ok {
		return e.resolveSecret(value)
	}
	if !hasDefault {
		return "", fmt.Errorf("${%s} is neither a key of the configuration nor an environment variable and has no default: "+
			"set it or use ${%s:default}", shownName(name), shownName(name))
	}
	return e.expand(defaultText)
}

func (e *expander) resolveReference(name string, n *node) (string, error) {
	if slices.Contains(e.resolving, name) {
		return "", fmt.Errorf("${%s} refers to itself", shownName(name))
	}
	if n.kind != scalarNode {
		return "", fmt.Errorf("${%s} refers to %s, but a placeholder must refer to a single value", shownName(name), n)
	}
	e.resolving = append(e.resolving, name)
	defer func() { e.resolving = e.resolving[:len(e.resolving)-1] }()
	text, err := e.expand(n.text)
	if err != nil {
		return "", err
	}
	return e.resolveSecret(text)
}

// resolveSecret returns the secret if a text is a reference, so that a password may be part of a value,
// as in a URL.
func (e *expander) resolveSecret(text string) (string, error) {
	if e.secrets == nil || secretReferencePrefix(text) == "" {
		return text, nil
	}
	value, err := e.secrets(text)
	if err == nil {
		e.found = append(e.found, value)
	}
	return value, err
}

// cutDefault cuts at the first colon that is not in an inner placeholder.
func cutDefault(inner string) (name, defaultText string, found bool) {
	depth := 0
	for i := range len(inner) {
		switch {
		case strings.HasPrefix(inner[i:], "${"):
			depth++
		case inner[i] == '}':
			depth--
		case inner[i] == ':' && depth == 0:
			return inner[:i], inner[i+1:], true
		}
	}
	return inner, "", false
}

// lookup returns the node at a path, whose keys may be nested or dotted in any mix, or nil.
func (n *node) lookup(path string) *node {
	for _, f := range n.fields {
		rest, ok := cutFold(path, f.key)
		switch {
		case !ok:
		case rest != "":
			if found := f.value.lookup(rest); found != nil {
				return found
			}
		case f.value.kind != nullNode:
			return f.value
		}
	}
	return nil
}

// clone copies the mappings of a tree, so that a Rename in one tree does not change the other.
func (n *node) clone() *node {
	copied := *n
	copied.fields = slices.Clone(n.fields)
	for i := range copied.fields {
		copied.fields[i].value = copied.fields[i].value.clone()
	}
	return &copied
}
