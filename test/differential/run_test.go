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
	after int // index of the step
	text  string
}

// batch runs sequences side by side.
type batch struct {
	world     *world
	sides     [2]*side // kubectl's and ours
	sequences []sequence
	live      [][2]object  // as in the cluster
	ended     map[int]bool // sequences that cannot continue
	shared    map[int]bool // sequences whose object another manager has applied too
	repeats   map[int]bool // sequences whose live or new object lists a port twice
	findings  []*finding   // by sequence; a sequence with a finding has ended
	steps     int          // number of steps so far
	done      int          // steps that succeeded on both sides
}

// run runs sequences, and returns the batch with its findings.
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
		if t.step.action == "replace" && b.live[n][0] == nil { // because kubectl creates nothing then
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

// isExempt reports whether kubectl is not a reference for a step. If an object was applied
// server-side only, a client-side apply of kubectl keeps the fields that the manifest no longer
// has. Ours removes them, except those of other managers.
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

// repeatsPort reports whether a port is listed twice, for example with two protocols. A strategic
// merge confuses these entries with any client, because its key is the port alone; a server-side
// apply does not.
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

// runAsKubectl runs steps with kubectl. If kubectl is not a reference for a step, it uses a
// server-side apply that removes the fields that must go.
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
		// Either side may get a conflict when the other does not. In addition, a server-side apply
		// takes over atomic fields that another manager has applied too, and a merge leaves them.
		if kubectlErr != nil || vedetteErr != nil || b.repeats[t.n] || b.shared[t.n] {
			return
		}
	}
	if t.kind.secret && b.shared[t.n] && b.sequences[t.n].mode == "mixed" { // without the annotation, fields that another manager has applied too are considered its own
		b.ended[t.n] = true
		return
	}
	found := differences("", untypedNil(a), untypedNil(o))
	if (kubectlErr == nil) != (vedetteErr == nil) {
		found = append(found, "only one side failed")
	}
	if len(found) > 0 {
		text := fmt.Sprintf("%s\n  kubectl: %v\n  vedette: %v", joinLines(found), kubectlErr, vedetteErr)
		b.findings[t.n] = &finding{at, text}
	}
}

// untypedNil returns nil for a nil object.
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

// reset deletes objects whose managed fields differ from now on.
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
