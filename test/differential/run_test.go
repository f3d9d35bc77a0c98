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
	lives     [][2]object  // as they are in the cluster
	over      map[int]bool // sequences that can't go on
	shared    map[int]bool // sequences whose object another manager applied too
	repeats   map[int]bool // sequences whose live or new object repeats a port
	found     []*finding   // by sequence; a sequence that has one is over
	steps     int          // that were taken
	done      int          // of those, what succeeded on both sides
}

// run carries out sequences, and returns what it finds, by sequence.
func (w *world) run(t *testing.T, sequences []sequence) *batch {
	t.Helper()
	b := &batch{world: w, sides: w.newSides(t), sequences: sequences, over: map[int]bool{}, shared: map[int]bool{}, lives: make([][2]object, len(sequences)), found: make([]*finding, len(sequences))}
	for at := 0; ; at++ {
		due := b.due(at)
		if len(due) == 0 {
			break
		}
		if err := b.take(t.Context(), at, due); err != nil {
			t.Fatal(err)
		}
		b.steps += len(due)
	}
	return b
}

func (b *batch) due(at int) []task {
	var due []task
	for n, s := range b.sequences {
		if at >= len(s.steps) || b.found[n] != nil || b.over[n] {
			continue
		}
		t := task{n, s.kind, s.steps[at]}
		if t.step.does == "replace" && b.lives[n][0] == nil { // kubectl creates nothing then
			t.step.does, t.step.way = "apply", clientSide
		}
		due = append(due, t)
	}
	return due
}

func (b *batch) take(ctx context.Context, at int, due []task) error {
	var departing, plain []task
	b.repeats = map[int]bool{}
	for _, t := range due {
		b.shared[t.n] = b.lives[t.n][0] != nil && b.shared[t.n] || t.step.does == "foreign"
		if b.departs(t) {
			b.repeats[t.n] = repeatsPort(t.step.body) || repeatsPort(b.lives[t.n][0])
			departing = append(departing, t)
		} else {
			plain = append(plain, t)
		}
	}
	theirs, err := b.takeAsKubectl(ctx, plain, departing)
	if err != nil {
		return err
	}
	ours, err := b.sides[1].take(ctx, due)
	if err != nil {
		return err
	}
	if err := b.look(ctx, due); err != nil {
		return err
	}
	for _, t := range plain {
		b.compare(at, t, theirs[t.n], ours[t.n], false)
	}
	for _, t := range departing {
		b.compare(at, t, theirs[t.n], ours[t.n], true)
	}
	return b.reset(ctx, departing)
}

// departs reports whether kubectl is no oracle of a step. Where an object was applied
// server-side only, a client-side apply of kubectl leaves whatever the manifest
// dropped; ours drops it, and spares what others own.
func (b *batch) departs(t task) bool {
	live := b.lives[t.n][0]
	if t.step.does != "apply" || t.step.way != clientSide || t.step.kubectl || live == nil || dig(live, "metadata", "annotations", lastApplied) != nil {
		return false
	}
	entries, _ := dig(live, "metadata", "managedFields").([]any)
	for _, e := range entries {
		if dig(e, "manager") == "kubectl" && dig(e, "operation") == "Apply" {
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
			port, _ := json.Marshal([]any{dig(element, "containerPort"), dig(element, "port")})
			if text := string(port); text != "[null,null]" && seen[text] || repeatsPort(element) {
				return true
			}
			seen[string(port)] = true
		}
	}
	return false
}

// takeAsKubectl takes steps on the side of kubectl. Where that is no oracle, its
// server-side apply is asked to drop what has to be dropped.
func (b *batch) takeAsKubectl(ctx context.Context, plain, departing []task) (map[int]error, error) {
	before := make([]task, len(departing))
	for i, t := range departing {
		before[i] = t
		before[i].step.way = forced
	}
	failed, err := b.sides[0].take(ctx, before)
	if err != nil {
		return nil, err
	}
	all := append([]task(nil), plain...)
	for _, t := range departing {
		if failed[t.n] == nil {
			all = append(all, t)
		}
	}
	results, err := b.sides[0].take(ctx, all)
	for _, t := range departing {
		if failed[t.n] != nil && results != nil {
			results[t.n] = failed[t.n]
		}
	}
	return results, err
}

// look reads the objects of both sides.
func (b *batch) look(ctx context.Context, tasks []task) error {
	var group errgroup.Group
	group.SetLimit(8)
	for _, t := range tasks {
		for i, s := range b.sides {
			group.Go(func() (err error) {
				b.lives[t.n][i], err = s.live(ctx, t.kind, t.n)
				return err
			})
		}
	}
	return group.Wait()
}

func (b *batch) compare(at int, t task, theirs, ours error, contentOnly bool) {
	a, o := forget(b.lives[t.n][0], b.sides[0], t.kind), forget(b.lives[t.n][1], b.sides[1], t.kind)
	if theirs == nil && ours == nil {
		b.done++
	}
	if contentOnly {
		a, o = forgetManagers(a), forgetManagers(o)
		// Either may see a conflict where the other has none. And a server-side apply takes over
		// what another manager applied too, if it is atomic, where a merge leaves it.
		if theirs != nil || ours != nil || b.repeats[t.n] || b.shared[t.n] {
			return
		}
	}
	if t.kind.secret && b.shared[t.n] && b.sequences[t.n].mode == "mixed" { // without the annotation, what another manager applied too is its own
		b.over[t.n] = true
		return
	}
	found := differences("", anyOf(a), anyOf(o))
	if (theirs == nil) != (ours == nil) {
		found = append(found, "of one only it is a failure")
	}
	if len(found) > 0 {
		text := fmt.Sprintf("%s\n  kubectl: %v\n  vedette: %v", joinLines(found), theirs, ours)
		b.found[t.n] = &finding{at, text}
	}
}

// anyOf makes nil of no object.
func anyOf(o object) any {
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
		b.over[t.n] = t.kind.stays
		for i, s := range b.sides {
			if b.lives[t.n][i] == nil {
				continue
			}
			errs = append(errs, s.takeOne(ctx, task{t.n, t.kind, step{does: "delete"}}))
			b.lives[t.n][i] = nil
		}
	}
	return errors.Join(errs...)
}
