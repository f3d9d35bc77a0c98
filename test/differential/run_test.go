//go:build linux

package differential

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"golang.org/x/sync/errgroup"
)

// finding is a difference between the two objects of a sequence.
type finding struct {
	after int // the number of the step
	text  string
}

// batch carries out sequences side by side.
type batch struct {
	world     *world
	sides     [2]*side // of kubectl, and ours
	sequences []sequence
	live      [][2]object  // as they are in the cluster
	ended     map[int]bool // sequences that can't go on
	shared    map[int]bool // sequences whose object another manager applied too
	repeats   map[int]bool // sequences whose live or new object repeats a port
	findings  []*finding   // by sequence; a sequence that has one is over
	steps     int          // that were taken
	done      int          // of those, what succeeded on both sides
}

// run carries out sequences, and returns what it finds, by sequence.
func (w *world) run(t *testing.T, sequences []sequence) *batch {
	t.Helper()
	b := &batch{world: w, sides: w.newSides(t), sequences: sequences, ended: map[int]bool{}, shared: map[int]bool{}, live: make([][2]object, len(sequences)), findings: make([]*finding, len(sequences))}
	for at := 0; ; at++ {
		due := b.nextTasks(at)
		if len(due) == 0 {
			break
		}
		if err := b.runStep(t.Context(), at, due); err != nil {
			t.Fatal(err)
		}
		b.steps += len(due)
	}
	return b
}

func (b *batch) nextTasks(at int) []task {
	var due []task
	for n, s := range b.sequences {
		if at >= len(s.steps) || b.findings[n] != nil || b.ended[n] {
			continue
		}
		t := task{n, s.kind, s.steps[at]}
		if t.step.action == "replace" && b.live[n][0] == nil { // kubectl creates nothing then
			t.step.action, t.step.mode = "apply", clientSide
		}
		due = append(due, t)
	}
	return due
}

func (b *batch) runStep(ctx context.Context, at int, tasks []task) error {
	var exempt, compared []task
	b.repeats = map[int]bool{}
	for _, t := range tasks {
		b.shared[t.n] = b.live[t.n][0] != nil && b.shared[t.n] || t.step.action == "foreign"
		if b.isExempt(t) {
			b.repeats[t.n] = repeatsPort(t.step.body) || repeatsPort(b.live[t.n][0])
			exempt = append(exempt, t)
		} else {
			compared = append(compared, t)
		}
	}
	kubectlErrs, err := b.runAsKubectl(ctx, compared, exempt)
	if err != nil {
		return err
	}
	vedetteErrs, err := b.sides[1].runTasks(ctx, tasks)
	if err != nil {
		return err
	}
	if err := b.readObjects(ctx, tasks); err != nil {
		return err
	}
	for _, t := range compared {
		b.compare(at, t, kubectlErrs[t.n], vedetteErrs[t.n], false)
	}
	for _, t := range exempt {
		b.compare(at, t, kubectlErrs[t.n], vedetteErrs[t.n], true)
	}
	return b.reset(ctx, exempt)
}

// isExempt reports whether kubectl is no oracle of a step. Where an object was applied
// server-side only, a client-side apply of kubectl leaves whatever the manifest
// dropped; ours drops it, and spares what others own.
func (b *batch) isExempt(t task) bool {
	live := b.live[t.n][0]
	if t.step.action != "apply" || t.step.mode != clientSide || t.step.byKubectl || live == nil || nested(live, "metadata", "annotations", lastApplied) != nil {
		return false
	}
	entries, _ := nested(live, "metadata", "managedFields").([]any)
	for _, e := range entries {
		if nested(e, "manager") == "kubectl" && nested(e, "operation") == "Apply" {
			return true
		}
	}
	return false
}

// repeatsPort reports whether one port is listed twice, as with two protocols. A
// strategic merge, which has the number alone for its key, confuses them, whoever makes
// it; a server-side apply does not.
func repeatsPort(v any) bool {
	switch v := v.(type) {
	case object:
		for _, member := range v {
			if repeatsPort(member) {
				return true
			}
		}
	case []any:
		seen := map[string]bool{}
		for _, element := range v {
			port, _ := json.Marshal([]any{nested(element, "containerPort"), nested(element, "port")})
			if text := string(port); text != "[null,null]" && seen[text] || repeatsPort(element) {
				return true
			}
			seen[string(port)] = true
		}
	}
	return false
}

// runAsKubectl takes steps on the side of kubectl. Where that is no oracle, its
// server-side apply is asked to drop what has to be dropped.
func (b *batch) runAsKubectl(ctx context.Context, compared, exempt []task) (map[int]error, error) {
	forcedFirst := make([]task, len(exempt))
	for i, t := range exempt {
		forcedFirst[i] = t
		forcedFirst[i].step.mode = forced
	}
	failed, err := b.sides[0].runTasks(ctx, forcedFirst)
	if err != nil {
		return nil, err
	}
	all := append([]task(nil), compared...)
	for _, t := range exempt {
		if failed[t.n] == nil {
			all = append(all, t)
		}
	}
	results, err := b.sides[0].runTasks(ctx, all)
	for _, t := range exempt {
		if failed[t.n] != nil && results != nil {
			results[t.n] = failed[t.n]
		}
	}
	return results, err
}

// readObjects reads the objects of both sides.
func (b *batch) readObjects(ctx context.Context, tasks []task) error {
	var group errgroup.Group
	group.SetLimit(8)
	for _, t := range tasks {
		for i, s := range b.sides {
			group.Go(func() (err error) {
				b.live[t.n][i], err = s.live(ctx, t.kind, t.n)
				return err
			})
		}
	}
	return group.Wait()
}

func (b *batch) compare(at int, t task, kubectlErr, vedetteErr error, contentOnly bool) {
	a, o := normalize(b.live[t.n][0], b.sides[0], t.kind), normalize(b.live[t.n][1], b.sides[1], t.kind)
	if kubectlErr == nil && vedetteErr == nil {
		b.done++
	}
	if contentOnly {
		a, o = removeManagedFields(a), removeManagedFields(o)
		// Either may see a conflict where the other has none. And a server-side apply takes over
		// what another manager applied too, if it is atomic, where a merge leaves it.
		if kubectlErr != nil || vedetteErr != nil || b.repeats[t.n] || b.shared[t.n] {
			return
		}
	}
	if t.kind.secret && b.shared[t.n] && b.sequences[t.n].mode == "mixed" { // without the annotation, what another manager applied too is its own
		b.ended[t.n] = true
		return
	}
	found := differences("", untypedNil(a), untypedNil(o))
	if (kubectlErr == nil) != (vedetteErr == nil) {
		found = append(found, "of one only it is a failure")
	}
	if len(found) > 0 {
		text := fmt.Sprintf("%s\n  kubectl: %v\n  vedette: %v", joinLines(found), kubectlErr, vedetteErr)
		b.findings[t.n] = &finding{at, text}
	}
}

// untypedNil makes nil of no object.
func untypedNil(o object) any {
	if o == nil {
		return nil
	}
	return o
}

func joinLines(lines []string) (text string) {
	for _, line := range lines {
		text += "\n  " + line
	}
	return text
}

// reset deletes objects whose managed fields differ from here on.
func (b *batch) reset(ctx context.Context, tasks []task) error {
	var errs []error
	for _, t := range tasks {
		b.ended[t.n] = t.kind.keepOnDelete
		for i, s := range b.sides {
			if b.live[t.n][i] == nil {
				continue
			}
			errs = append(errs, s.runTask(ctx, task{t.n, t.kind, step{action: "delete"}}))
			b.live[t.n][i] = nil
		}
	}
	return errors.Join(errs...)
}
