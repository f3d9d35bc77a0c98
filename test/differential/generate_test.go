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

// Templates are trees of JSON with choices. A member whose name begins with ! is always present.
// The others may be absent or null. Objects and lists may be empty.
type (
	oneOf    []any               // one of these values
	someOf   []any               // some of these elements, in any order, sometimes one twice
	required struct{ value any } // an element that is always present
)

// generator generates manifests from a template. Consecutive manifests of one generator are
// similar: it mostly repeats its choices.
type generator struct {
	random  *rand.Rand
	choices map[string]int // by path in the template
}

func newGenerator(random *rand.Rand) *generator {
	return &generator{random, map[string]int{}}
}

// choose returns a number below n, mostly the same as the last time.
func (g *generator) choose(path string, n int) int {
	last, known := g.choices[path]
	if !known || g.random.IntN(4) == 0 {
		last = g.random.IntN(n)
		g.choices[path] = last
	}
	return last
}

// presence says in what form a member is present.
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
	case object, someOf:
		return true
	}
	return false
}

// make generates a value from a template.
func (g *generator) make(path string, template any) any {
	switch t := template.(type) {
	case oneOf:
		return g.make(path+"=", t[g.choose(path, len(t))])
	case required:
		return g.make(path, t.value)
	case object:
		return g.object(path, t)
	case someOf:
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
			made[name] = emptyValue(t[member])
		}
	}
	return made
}

func emptyValue(template any) any {
	if _, is := template.(someOf); is {
		return []any{}
	}
	return object{}
}

func (g *generator) list(path string, t someOf) []any {
	made := []any{}
	for i, element := range t {
		below := path + "/" + strconv.Itoa(i)
		_, required := element.(required)
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

// applyMode is how a manifest is applied.
type applyMode string

const (
	clientSide applyMode = "client-side"
	serverSide applyMode = "server-side"
	forced     applyMode = "server-side, forced"
)

// step is one action on the object, on both sides.
type step struct {
	action    string    // apply, replace, patch, foreign, scale, delete
	mode      applyMode // of an apply
	byKubectl bool      // both sides use kubectl
	body      object    // a manifest or a patch
	replicas  int
}

// sequence is the life of one object.
type sequence struct {
	seed  uint64
	mode  string
	kind  *kind
	steps []step
}

// applyModes are the modes of the applies in a sequence.
var applyModes = map[string][]applyMode{"client": {clientSide}, "server": {serverSide, forced}, "mixed": {clientSide, serverSide, forced}}

const sequenceSteps = 8

// sharedKinds are the kinds that other managers change too.
var sharedKinds = slices.DeleteFunc(slices.Clone(kinds), func(k *kind) bool { return k.foreignFields == nil })

// newSequence returns the sequence for a seed and a mode.
func newSequence(seed uint64, mode string) sequence {
	random := rand.New(rand.NewPCG(seed, uint64(len(mode))))
	s := sequence{seed: seed, mode: mode, kind: kinds[random.IntN(len(kinds))]}
	switch random.IntN(6) { // kinds that find more are more frequent
	case 0:
		s.kind = kinds[slices.IndexFunc(kinds, func(k *kind) bool { return k.secret })]
	case 1, 2:
		s.kind = sharedKinds[random.IntN(len(sharedKinds))]
	}
	ours, foreign, patches := newGenerator(random), newGenerator(random), newGenerator(random)
	for i := range sequenceSteps {
		s.steps = append(s.steps, s.step(i, random, ours, foreign, patches))
	}
	return s
}

func (s sequence) step(i int, random *rand.Rand, ours, theirs, patches *generator) step {
	n := random.IntN(20)
	switch {
	case i > 0 && n < 3:
		return step{action: "patch", body: patches.object("", s.kind.foreignTemplate())}
	case i > 0 && n < 5:
		return step{action: "foreign", body: s.kind.manifest(theirs)}
	case i > 0 && n < 6 && s.kind.hasScale:
		return step{action: "scale", replicas: random.IntN(3)}
	case i > 0 && n < 7 && !s.kind.keepOnDelete:
		return step{action: "delete"}
	}
	if i > 0 && n < 8 {
		return step{action: "replace", body: s.kind.manifest(ours)}
	}
	allowed := applyModes[s.mode]
	made := step{action: "apply", mode: allowed[random.IntN(len(allowed))], body: s.kind.manifest(ours)}
	made.byKubectl = s.mode == "mixed" && !s.kind.secret && random.IntN(4) == 0
	if random.IntN(12) == 0 && made.mode == clientSide {
		meta := made.body["metadata"].(object)
		meta["resourceVersion"] = "1"
		if random.IntN(2) == 0 {
			meta["uid"] = "0e1b6a9c-3b55-4f3a-9d2e-2f5f0c1d7a11"
		}
	}
	return made
}
