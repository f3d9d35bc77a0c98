//go:build linux

package differential

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	seeds      = flag.Int("seeds", 15, "number of sequences to run in each mode")
	firstSeed  = flag.Uint64("from", 1, "seed of the first sequence")
	singleMode = flag.String("mode", "", "run only this mode: client, server or mixed")
)

// batchSize is the maximum number of objects that one kubectl process applies.
const batchSize = 60

// TestDifferential applies random sequences of manifests with kubectl and with an agent's operator,
// and compares the objects after each step.
func TestDifferential(t *testing.T) {
	w := newWorld(t)
	for _, mode := range []string{"client", "server", "mixed"} {
		if *singleMode != "" && mode != *singleMode {
			continue
		}
		t.Run(mode, func(t *testing.T) {
			var all []sequence
			for i := range *seeds {
				all = append(all, newSequence(*firstSeed+uint64(i), mode))
			}
			began, steps, done := time.Now(), 0, 0
			for chunk := range slices.Chunk(all, batchSize) {
				b := w.run(t, chunk)
				steps, done = steps+b.steps, done+b.done
				b.report(t)
			}
			t.Logf("%d sequences, %d steps, of which %d succeeded, %v", len(all), steps, done, time.Since(began).Round(time.Second))
			if len(all) >= 10 && 2*done < steps {
				t.Error("most steps failed, and failed steps compare little")
			}
		})
	}
}

// maxShrunk limits how many sequences of a batch are shortened, because a reader fixes the first
// few.
const maxShrunk = 3

func (b *batch) report(t *testing.T) {
	t.Helper()
	shrunk := 0
	for n, f := range b.findings {
		if f == nil {
			continue
		}
		s := b.sequences[n]
		s.steps = s.steps[:f.after+1]
		shrunk++
		if shrunk <= maxShrunk {
			s, f = b.world.shrink(t, s, f)
		}
		t.Errorf("%s %s of seed %d differs after the last of these steps:\n%s\nin%s\nrun it again: make differential FROM=%d SEEDS=1 MODE=%s",
			s.kind.name, s.mode, s.seed, s.describe(), f.text, s.seed, s.mode)
	}
}

// shrink finds a shorter sequence with the same difference, by removing steps one at a time.
func (w *world) shrink(t *testing.T, s sequence, f *finding) (sequence, *finding) {
	t.Helper()
	for len(s.steps) > 1 {
		var shorter []sequence
		for i := range s.steps[:len(s.steps)-1] {
			candidate := s
			candidate.steps = slices.Delete(slices.Clone(s.steps), i, i+1)
			shorter = append(shorter, candidate)
		}
		b := w.run(t, shorter)
		i := slices.IndexFunc(b.findings, func(f *finding) bool { return f != nil })
		if i < 0 {
			break
		}
		s, f = shorter[i], b.findings[i]
		s.steps = s.steps[:f.after+1]
	}
	return s, f
}

func (s sequence) describe() string {
	var lines []string
	for i, step := range s.steps {
		line := fmt.Sprintf("  %d. %s", i+1, step.action)
		switch {
		case step.action == "scale":
			line += fmt.Sprint(" ", step.replicas)
		case step.action == "apply" && step.byKubectl:
			line += fmt.Sprintf(" (%s, by kubectl on both sides)", step.mode)
		case step.action == "apply":
			line += fmt.Sprintf(" (%s)", step.mode)
		}
		if step.body != nil {
			line += " " + string(encode(step.body))
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}
