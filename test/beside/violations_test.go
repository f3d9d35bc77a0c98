package beside

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
)

// violations are answers that must not be, and operations that went wrong. Each kind is reported once, with the steps in
// which it happened and its first example.
type violations struct {
	mu    sync.Mutex
	kinds map[string]*violation
}

type violation struct {
	example string
	steps   []string // in order
	count   map[string]int
}

// add adds a violation. Those of one source and kind are reported together.
func (v *violations) add(step, source, kind, example string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	key := source + ": " + kind
	if v.kinds == nil {
		v.kinds = map[string]*violation{}
	}
	found := v.kinds[key]
	if found == nil {
		found = &violation{example: "in step " + step + ": " + example, count: map[string]int{}}
		v.kinds[key] = found
	}
	if found.count[step]++; found.count[step] == 1 {
		found.steps = append(found.steps, step)
	}
}

// report fails the test if there are any.
func (v *violations) report(t *testing.T) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(v.kinds)) {
		found := v.kinds[key]
		var steps []string
		for _, step := range found.steps {
			steps = append(steps, fmt.Sprintf("%s (%s)", step, times(found.count[step])))
		}
		t.Errorf("%s\n    %s\n    first %s", key, strings.Join(steps, ", "), found.example)
	}
}
