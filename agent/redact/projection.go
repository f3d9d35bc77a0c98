package redact

import (
	"fmt"
	"strings"

	"github.com/vedette-io/vedette"
)

// projection is what to lift out of the objects of one kind: the paths of its fields
// as a tree, and the fields' names. Fields are numbered in the order of the
// tree, so that those below a node are a range.
type projection struct {
	tree  node
	names [][]byte // of the fields by number, as `"name":`
	order []int    // the numbers in the order of the Projection
}

// root returns the plan's tree; p may be nil.
func (p *projection) root() *node {
	if p == nil {
		return nil
	}
	return &p.tree
}

// node is one place in objects.
type node struct {
	childNames []string // of the members that lead on
	children   []*node
	star       *node // the elements of an array here
	values     []int // the fields that are the value here
	counts     []int // the fields that are the number of its elements or members
	from, to   int   // the fields at and below this place
}

// isTarget reports whether a path ends here.
func (n *node) isTarget() bool { return len(n.values)+len(n.counts) > 0 }

// hasDescendants reports whether this place must be walked; n may be nil.
func (n *node) hasDescendants() bool {
	return n != nil && (n.star != nil || len(n.children) > 0 || len(n.counts) > 0)
}

// child returns the node of the member with that name; both may be nil.
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

// elements returns the node of the elements of an array; both may be nil.
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
			return nil, vedette.Errorf(vedette.Invalid, "there are two lifts for kind %q; merge them into one", l.Kind)
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
			return nil, vedette.Errorf(vedette.Invalid, "lift of kind %q: the name %q of field %d is empty or taken", l.Kind, f.Name, i+1)
		}
		seen[f.Name] = true
		if err := p.tree.add(f.Path, i); err != nil {
			return nil, vedette.Errorf(vedette.Invalid, "lift of kind %q, field %s, path %q: %w", l.Kind, f.Name, f.Path, err)
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

// add grows the tree by a path that ends in the given field.
func (n *node) add(path string, field int) error {
	steps, err := parsePath(path)
	if err != nil {
		return err
	}
	for i, s := range steps {
		switch {
		case s.special && i == 0:
			return fmt.Errorf("an object's root has names only")
		case s.special && s.name == "#" && i == len(steps)-1:
			n.counts = append(n.counts, field)
			return nil
		case s.special && s.name == "#":
			return fmt.Errorf("# must be last")
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

// number gives the fields at and below n their numbers, and tells them.
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

// pathStep is one part of a path: a member's name, or * or # with a meaning.
type pathStep struct {
	name    string
	special bool
}

// parsePath cuts a path at its dots. A backslash takes the meaning from what
// follows it.
func parsePath(path string) ([]pathStep, error) {
	var steps []pathStep
	var name strings.Builder
	escaped := false
	endStep := func() error {
		s := pathStep{name.String(), !escaped && (name.String() == "*" || name.String() == "#")}
		if s.name == "" {
			return fmt.Errorf("a member's name is empty")
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
