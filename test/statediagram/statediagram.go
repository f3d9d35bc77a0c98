// Package statediagram draws the transitions that tests of state machines have seen, for docs/flow.md.
package statediagram

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Diagram is a set of transitions. The zero value is empty.
type Diagram struct {
	// Initial and Final are the states in which a machine begins and ends; empty to draw none.
	Initial, Final string

	events map[edge]map[string]bool
}

type edge struct{ from, to string }

// Add adds a transition. One that leads to the same state is left out.
func (d *Diagram) Add(from, to, event string) {
	e := edge{from, to}
	if from == to {
		return
	}
	if d.events == nil {
		d.events = map[edge]map[string]bool{}
	}
	if d.events[e] == nil {
		d.events[e] = map[string]bool{}
	}
	d.events[e][event] = true
}

// String returns the diagram in Mermaid's language. Events that lead from one state to another share an arrow.
func (d *Diagram) String() string {
	var b strings.Builder
	b.WriteString("```mermaid\nstateDiagram-v2\n")
	if d.Initial != "" {
		fmt.Fprintf(&b, "    [*] --> %s\n", d.Initial)
	}
	for _, e := range slices.SortedFunc(maps.Keys(d.events), func(a, b edge) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
	}) {
		fmt.Fprintf(&b, "    %s --> %s: %s\n", e.from, e.to, strings.Join(slices.Sorted(maps.Keys(d.events[e])), ", "))
	}
	if d.Final != "" {
		fmt.Fprintf(&b, "    %s --> [*]\n", d.Final)
	}
	b.WriteString("```\n")
	return b.String()
}

// EventName returns the name of an event's type, without its package.
func EventName(event any) string {
	name := fmt.Sprintf("%T", event)
	return name[strings.LastIndex(name, ".")+1:]
}
