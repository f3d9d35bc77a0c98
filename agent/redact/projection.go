package redact

import (
	"fmt"
	"strings"

	"github.com/vedette-io/vedette"
)

// projection is a compiled vedette.Projection: the paths of its fields as a tree, and the
// names of the fields. Fields are numbered in the order of the tree, so that the fields
// below a node are a range.
type projection struct {
	tree  node
	names [][]byte // by field number, as `"name":`
	order []int    // the field numbers in the order of the Projection
}

// root returns the root of the tree; p may be nil.
func (p *projection) root() *node {
	if p == nil {
		return nil
	}
	return &p.tree
}

// node is a place in objects.
type node struct {
	childNames []string // the members with children
	children   []*node
	star       *node // the elements of the array here
	values     []int // the fields whose value is here
	counts     []int // the fields that count the elements or members here
	from, to   int   // the range of fields at and below this place
}

// isTarget reports whether a path ends here.
func (n *node) isTarget() bool { return len(n.values)+len(n.counts) > 0 }

// hasDescendants reports whether the value here must be walked; n may be nil.
func (n *node) hasDescendants() bool {
	return n != nil && (n.star != nil || len(n.children) > 0 || len(n.counts) > 0)
}

// child returns the node of the member with that name, or nil; n may be nil.
func (n *node) child(name []byte) *node {
	if n == nil {
		return nil
	}
	for i, s := range n.childNames {
		if s == string(name) {
			return n.children[i]
		}
	}
	return nil
}

// elements returns the node of the elements of an array, or nil; n may be nil.
func (n *node) elements() *node {
	if n == nil {
		return nil
	}
	return n.star
}

func compileProjections(projections []vedette.Projection) (map[vedette.Kind]*projection, error) {
	compiled := make(map[vedette.Kind]*projection, len(projections))
	for _, l := range projections {
		if compiled[l.Kind] != nil {
			return nil, vedette.Errorf(vedette.Invalid, "kind %q has two projections: merge them into one", l.Kind)
		}
		p, err := compileProjection(l)
		if err != nil {
			return nil, err
		}
		compiled[l.Kind] = p
	}
	return compiled, nil
}

func compileProjection(l vedette.Projection) (*projection, error) {
	p := &projection{order: make([]int, len(l.Fields))}
	seen := map[string]bool{}
	for i, f := range l.Fields {
		if f.Name == "" || seen[f.Name] {
			return nil, vedette.Errorf(vedette.Invalid, "projection of kind %q: name %q of field %d is empty or used twice", l.Kind, f.Name, i+1)
		}
		seen[f.Name] = true
		if err := p.tree.add(f.Path, i); err != nil {
			return nil, vedette.Errorf(vedette.Invalid, "projection of kind %q, field %s, path %q: %w", l.Kind, f.Name, f.Path, err)
		}
	}
	p.tree.number(0, func(field, number int) {
		p.order[field] = number
	})
	p.names = make([][]byte, len(l.Fields))
	for i, f := range l.Fields {
		p.names[p.order[i]] = append(appendQuoted(nil, f.Name), ':')
	}
	return p, nil
}

func (n *node) add(path string, field int) error {
	steps, err := parsePath(path)
	if err != nil {
		return err
	}
	for i, s := range steps {
		switch {
		case s.special && i == 0:
			return fmt.Errorf("the path must begin with a name")
		case s.special && s.name == "#" && i == len(steps)-1:
			n.counts = append(n.counts, field)
			return nil
		case s.special && s.name == "#":
			return fmt.Errorf("# must be the last part")
		case s.special:
			if n.star == nil {
				n.star = &node{}
			}
			n = n.star
		default:
			n = n.addChild(s.name)
		}
	}
	n.values = append(n.values, field)
	return nil
}

func (n *node) addChild(name string) *node {
	if c := n.child([]byte(name)); c != nil {
		return c
	}
	c := &node{}
	n.childNames, n.children = append(n.childNames, name), append(n.children, c)
	return c
}

// number numbers the fields at and below n and calls assign for each.
func (n *node) number(next int, assign func(field, number int)) int {
	n.from = next
	for _, fields := range [][]int{n.values, n.counts} {
		for i, field := range fields {
			assign(field, next)
			fields[i] = next
			next++
		}
	}
	for _, c := range n.children {
		next = c.number(next, assign)
	}
	if n.star != nil {
		next = n.star.number(next, assign)
	}
	n.to = next
	return next
}

// pathStep is one part of a path: the name of a member, * or #.
type pathStep struct {
	name    string
	special bool
}

// parsePath splits a path at its dots. A backslash escapes the next character.
func parsePath(path string) ([]pathStep, error) {
	var steps []pathStep
	var name strings.Builder
	escaped := false
	endStep := func() error {
		s := pathStep{name.String(), !escaped && (name.String() == "*" || name.String() == "#")}
		if s.name == "" {
			return fmt.Errorf("a part of the path is empty")
		}
		steps = append(steps, s)
		name.Reset()
		escaped = false
		return nil
	}
	for i := 0; i < len(path); i++ {
		switch c := path[i]; {
		case c == '\\' && i+1 < len(path):
			i++
			escaped = true
			name.WriteByte(path[i])
		case c == '.':
			if err := endStep(); err != nil {
				return nil, err
			}
		default:
			name.WriteByte(c)
		}
	}
	return steps, endStep()
}
