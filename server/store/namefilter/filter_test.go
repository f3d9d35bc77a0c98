package namefilter

import (
	"fmt"
	"strings"
	"testing"
)

// FuzzNothingIsMissed checks that a filter never denies a text that it was given, whatever else is
// in it and however small it is.
func FuzzNothingIsMissed(f *testing.F) {
	f.Add("shop", "web-0", "op", uint8(3))
	f.Add("", "ü\x00é", "\xc3", uint8(0))
	f.Add("kube-system", strings.Repeat("a", 300), "aaa", uint8(255))
	f.Fuzz(func(t *testing.T, namespace, name, text string, others uint8) {
		filter := New()
		filter.Add(1, namespace, name)
		for i := range int(others) {
			filter.Add(2, fmt.Sprint("other-", i))
		}
		for _, when := range []string{"before", "after"} {
			for _, part := range []string{namespace, name, name[len(name)/2:], namespace[:len(namespace)/2]} {
				if !filter.MayContain(NewPattern(part), []int64{3, 1}) {
					t.Errorf("%s Compact: %q is denied, but it is in %q or %q", when, part, namespace, name)
				}
			}
			isIn := strings.Contains(namespace, text) || strings.Contains(name, text)
			if isIn && !filter.MayContain(NewPattern(text), []int64{1}) {
				t.Errorf("%s Compact: %q is denied, but it is in %q or %q", when, text, namespace, name)
			}
			filter.Compact()
		}
	})
}

// TestMostIsDenied checks that filters of small and large sets deny nearly all texts that are in no
// name, with little memory.
func TestMostIsDenied(t *testing.T) {
	for _, names := range []int{1, 20, 2000} {
		t.Run(fmt.Sprint(names), func(t *testing.T) {
			f := New()
			for i := range names {
				f.Add(1, "shop", fmt.Sprintf("front-%06d-x%04x", i*7919%1_000_000, i*31))
			}
			f.Compact()
			denied := 0
			for i := range 1000 {
				if !f.MayContain(NewPattern(fmt.Sprintf("no-%03d-name", i)), []int64{1}) {
					denied++
				}
			}
			if bytes := len(f.words) * 8; denied < 990 || bytes > 64+16*names {
				t.Errorf("%d of 1000 texts are denied by a filter of %d bytes, want 990 by %d", denied, bytes, 64+16*names)
			}
		})
	}
}

func TestKindsAreDenied(t *testing.T) {
	f := New()
	f.Add(7, "web")
	f.Add(3, "db")
	for text, kinds := range map[string][]int64{"": {3}, "we": {7}, "web": {1, 3}, "db": {7, 9}} {
		if !f.MayContain(NewPattern(text), kinds) {
			t.Errorf("%q in kinds %v is denied, but there are such names", text, kinds)
		}
	}
	for text, kinds := range map[string][]int64{"": {5}, "web": {5, 6}, "wob": {3, 7}, "x": nil} {
		if f.MayContain(NewPattern(text), kinds) {
			t.Errorf("%q in kinds %v: got true, but no such name was added", text, kinds)
		}
	}
}

// TestFilterWearsWithManyNames checks that a filter asks for a new one after many names were added, and that a
// new one does not.
func TestFilterWearsWithManyNames(t *testing.T) {
	f := New()
	for i := range 50 {
		f.Add(1, fmt.Sprint("name-", i))
	}
	f.Compact()
	added := 0
	for ; !f.IsWorn(); added++ {
		f.Add(1, "more")
	}
	if added != 2*50+100+1 {
		t.Errorf("it is worn after %d names, want %d", added, 2*50+100+1)
	}
	f.Compact()
	if f.IsWorn() {
		t.Error("it is worn after Compact")
	}
}

// BenchmarkAdd is what each new object costs its writer.
func BenchmarkAdd(b *testing.B) {
	f := New()
	for b.Loop() {
		f.Add(1, "production", "front-7f8c9d6b5-x2k4p")
	}
}
