//go:build linux

package differential

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

type object = map[string]any

// Templates are trees of JSON with choices. A member whose name begins with ! is
// always there; all others may be left out, or be null. What is an object or a list
// may be empty.
type (
	one  []any               // one of these values
	list []any               // some of these elements, in any order, now and then one twice
	must struct{ value any } // an element that is always there
)

// generator makes manifests of a template. Those that one generator makes follow each
// other: what it chose once stays so for the most part.
type generator struct {
	random *rand.Rand
	chosen map[string]int // by the path in the template
}

func newGenerator(random *rand.Rand) *generator {
	return &generator{random, map[string]int{}}
}

// choose returns a number below n: mostly the same as the last time.
func (g *generator) choose(path string, n int) int {
	last, known := g.chosen[path]
	if !known || g.random.IntN(4) == 0 {
		last = g.random.IntN(n)
		g.chosen[path] = last
	}
	return last
}

// presence says in what form a member is there.
type presence int

const (
	present presence = iota
	absent
	null
	empty
)

func (g *generator) presence(path string, template any) presence {
	switch n := g.choose(path+"?", 24); {
	case n == 0:
		return null
	case n == 1 && isContainer(template):
		return empty
	case n < 7:
		return absent
	}
	return present
}

func isContainer(template any) bool {
	switch template.(type) {
	case object, list:
		return true
	}
	return false
}

// make makes a value of a template.
func (g *generator) make(path string, template any) any {
	switch t := template.(type) {
	case one:
		return g.make(path+"=", t[g.choose(path, len(t))])
	case must:
		return g.make(path, t.value)
	case object:
		return g.object(path, t)
	case list:
		return g.list(path, t)
	}
	return template
}

func (g *generator) object(path string, t object) object {
	made := object{}
	for _, member := range slices.Sorted(maps.Keys(t)) {
		name, required := strings.CutPrefix(member, "!")
		below := path + "/" + name
		if required {
			made[name] = g.make(below, t[member])
			continue
		}
		switch g.presence(below, t[member]) {
		case present:
			made[name] = g.make(below, t[member])
		case null:
			made[name] = nil
		case empty:
			made[name] = emptyOf(t[member])
		}
	}
	return made
}

func emptyOf(template any) any {
	if _, is := template.(list); is {
		return []any{}
	}
	return object{}
}

func (g *generator) list(path string, t list) []any {
	made := []any{}
	for i, element := range t {
		below := path + "/" + strconv.Itoa(i)
		_, required := element.(must)
		if required || g.choose(below+"?", 4) > 0 {
			made = append(made, g.make(below, element))
		}
	}
	order := rand.New(rand.NewPCG(uint64(g.choose(path+"order", 3)), 1))
	order.Shuffle(len(made), func(i, j int) { made[i], made[j] = made[j], made[i] })
	if len(made) > 0 && g.choose(path+"twice", 30) == 0 {
		made = append(made, made[0])
	}
	return made
}

// way is how a manifest is applied.
type way string

const (
	clientSide way = "client-side"
	serverSide way = "server-side"
	forced     way = "server-side, forced"
)

// step is one thing that is done to the object, on both sides.
type step struct {
	does     string // apply, replace, patch, foreign, scale, delete
	way      way    // of an apply
	kubectl  bool   // kubectl applies it on both sides
	body     object // a manifest, or a patch
	replicas int
}

// sequence is the life of one object.
type sequence struct {
	seed  uint64
	mode  string
	kind  *kind
	steps []step
}

// modes are the ways of the applies in a sequence.
var modes = map[string][]way{"client": {clientSide}, "server": {serverSide, forced}, "mixed": {clientSide, serverSide, forced}}

const sequenceSteps = 8

// shared are the kinds that other managers change too.
var shared = slices.DeleteFunc(slices.Clone(kinds), func(k *kind) bool { return k.others == nil })

// newSequence makes a sequence. The same seed and mode make the same one.
func newSequence(seed uint64, mode string) sequence {
	random := rand.New(rand.NewPCG(seed, uint64(len(mode))))
	s := sequence{seed: seed, mode: mode, kind: kinds[random.IntN(len(kinds))]}
	switch random.IntN(6) { // some show more than others
	case 0:
		s.kind = kinds[slices.IndexFunc(kinds, func(k *kind) bool { return k.secret })]
	case 1, 2:
		s.kind = shared[random.IntN(len(shared))]
	}
	ours, theirs, patches := newGenerator(random), newGenerator(random), newGenerator(random)
	for i := range sequenceSteps {
		s.steps = append(s.steps, s.step(i, random, ours, theirs, patches))
	}
	return s
}

func (s sequence) step(i int, random *rand.Rand, ours, theirs, patches *generator) step {
	n := random.IntN(20)
	switch {
	case i > 0 && n < 3:
		return step{does: "patch", body: patches.object("", s.kind.foreign())}
	case i > 0 && n < 5:
		return step{does: "foreign", body: s.kind.manifest(theirs)}
	case i > 0 && n < 6 && s.kind.scales:
		return step{does: "scale", replicas: random.IntN(3)}
	case i > 0 && n < 7 && !s.kind.stays:
		return step{does: "delete"}
	}
	if i > 0 && n < 8 {
		return step{does: "replace", body: s.kind.manifest(ours)}
	}
	ways := modes[s.mode]
	made := step{does: "apply", way: ways[random.IntN(len(ways))], body: s.kind.manifest(ours)}
	made.kubectl = s.mode == "mixed" && !s.kind.secret && random.IntN(4) == 0
	if random.IntN(12) == 0 && made.way == clientSide {
		meta := made.body["metadata"].(object)
		meta["resourceVersion"] = "1"
		if random.IntN(2) == 0 {
			meta["uid"] = "0e1b6a9c-3b55-4f3a-9d2e-2f5f0c1d7a11"
		}
	}
	return made
}
