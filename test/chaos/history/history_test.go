package history

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// op returns an operation of object x that lasts from one second to another.
func op(verb Verb, value string, outcome Outcome, from, to int) Operation {
	return Operation{Object: "x", Verb: verb, Value: value, Outcome: outcome, Call: time.Duration(from) * time.Second, Return: time.Duration(to) * time.Second}
}

func TestLinearizability(t *testing.T) {
	late := op(Write, "2", Done, 3, 4)
	late.IsLate = true
	for name, tt := range map[string]struct {
		ops    []Operation
		wanted bool
	}{
		"an effect that was said to come later": {[]Operation{op(Write, "1", Done, 1, 2), late, op(Read, "1", Done, 5, 6), op(Read, "2", Done, 7, 8)}, true},
		"stale in spite of a later effect":      {[]Operation{op(Write, "1", Done, 1, 2), op(Write, "3", Done, 3, 4), late, op(Read, "1", Done, 5, 6)}, false},
		"reads what was written":                {[]Operation{op(Write, "1", Done, 1, 2), op(Read, "1", Done, 3, 4)}, true},
		"a stale read":                          {[]Operation{op(Write, "1", Done, 1, 2), op(Write, "2", Done, 3, 4), op(Read, "1", Done, 5, 6)}, false},
		"a lost write":                          {[]Operation{op(Write, "1", Done, 1, 2), op(Read, Absent, Done, 3, 4)}, false},
		"a read during a write may see either": {[]Operation{op(Write, "1", Done, 1, 2), op(Write, "2", Done, 3, 9),
			op(Read, "1", Done, 4, 5), op(Read, "2", Done, 6, 7)}, true},
		"a read goes back": {[]Operation{op(Write, "1", Done, 1, 2), op(Write, "2", Done, 3, 4), op(Read, "2", Done, 4, 5), op(Read, "1", Done, 6, 7)}, false},
		"a read goes back before the end, and after it": {[]Operation{op(Write, "1", Done, 1, 2), op(Write, "2", Done, 3, 8), op(Read, "2", Done, 4, 5),
			op(Read, "1", Done, 6, 7), op(Read, "1", Done, 9, 10)}, false},
		"an unknown write takes effect late": {[]Operation{op(Write, "1", Done, 1, 2), op(Write, "2", Unknown, 3, 0), op(Read, "1", Done, 5, 6),
			op(Read, "2", Done, 50, 60)}, true},
		"an unknown write never takes effect":              {[]Operation{op(Write, "1", Done, 1, 2), op(Write, "2", Unknown, 3, 0), op(Read, "1", Done, 5, 6)}, true},
		"a write takes effect twice":                       {[]Operation{op(Write, "2", Done, 1, 2), op(Read, "2", Done, 3, 3), op(Write, "3", Done, 4, 5), op(Read, "2", Done, 6, 7)}, false},
		"an unknown write takes effect before it was sent": {[]Operation{op(Read, "1", Done, 1, 2), op(Write, "1", Unknown, 3, 0)}, false},
		"a failed write has an effect":                     {[]Operation{op(Write, "1", Failed, 1, 2), op(Read, "1", Done, 3, 4)}, false},
		"a deletion":                                       {[]Operation{op(Write, "1", Done, 1, 2), op(Delete, "", Done, 3, 4), op(Read, Absent, Done, 5, 6)}, true},
		"a deleted object comes back":                      {[]Operation{op(Write, "1", Done, 1, 2), op(Delete, "", Done, 3, 4), op(Read, "1", Done, 5, 6)}, false},
		"an unknown deletion":                              {[]Operation{op(Write, "1", Done, 1, 2), op(Delete, "", Unknown, 3, 0), op(Read, Absent, Done, 5, 6)}, true},
		"nothing was read":                                 {nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			other := Operation{Object: "y", Verb: Write, Value: "other", Outcome: Done, Call: 1, Return: 2}
			got := CheckLinearizable(append(tt.ops, other), 10*time.Second)
			if len(got.Inconclusive) > 0 || (len(got.Violations) == 0) != tt.wanted {
				t.Fatalf("got violations %v, inconclusive %v; linearizable should be %v", got.Violations, got.Inconclusive, tt.wanted)
			}
			if tt.wanted {
				return
			}
			if len(got.Violations) != 1 || !strings.HasPrefix(got.Violations[0], "x is not") {
				t.Errorf("got %q, want the object x", got.Violations)
			}
			var page strings.Builder
			if err := got.Picture(&page); err != nil || !strings.Contains(page.String(), "<html") {
				t.Errorf("got a picture of %d bytes, %v", page.Len(), err)
			}
		})
	}
}

// TestEffectsBeforeTheAnswer lets servers show an effect at different times before it is answered.
func TestEffectsBeforeTheAnswer(t *testing.T) {
	got := CheckLinearizable([]Operation{op(Write, "1", Done, 1, 2), op(Write, "2", Done, 3, 9), op(Read, "2", Done, 4, 5), op(Read, "1", Done, 6, 7), op(Read, "2", Done, 10, 11)}, 10*time.Second)
	if len(got.Violations) > 0 || !slices.Equal(got.Early, []string{"x"}) {
		t.Errorf("got violations %v, early %v, want x as early", got.Violations, got.Early)
	}
}

// TestManyUnknownWrites checks that what nobody has read does not take the checker's time.
func TestManyUnknownWrites(t *testing.T) {
	var ops []Operation
	for i := range 200 {
		ops = append(ops, op(Write, strings.Repeat("x", i+1), Unknown, i, 0))
	}
	ops = append(ops, op(Write, "1", Done, 300, 301), op(Read, "1", Done, 302, 303))
	if got := CheckLinearizable(ops, 10*time.Second); got.Checked != 2 || len(got.Violations)+len(got.Inconclusive) > 0 {
		t.Errorf("got %+v, want two operations that are linearizable", got)
	}
}

func TestEffects(t *testing.T) {
	cluster := func(values ...string) map[string][]Version { // a second after each other
		var versions []Version
		for i, v := range values {
			versions = append(versions, Version{UID: "u", Version: uint64(i + 1), Value: v, At: time.Duration(i+1) * time.Second})
		}
		return map[string][]Version{"x": versions}
	}
	late := op(Write, "1", Unknown, 1, 0)
	late.Latest = 2 * time.Second
	for name, tt := range map[string]struct {
		ops      []Operation
		cluster  map[string][]Version
		want     string // part of the only finding; empty for none
		repeated int
	}{
		"once": {[]Operation{op(Write, "1", Done, 1, 2), op(Write, "2", Unknown, 3, 0), op(Write, "3", Failed, 3, 4), op(Read, "1", Done, 5, 6)},
			cluster("1", "2"), "", 0},
		"versions of the same value": {[]Operation{op(Write, "1", Done, 1, 2)}, cluster("1", "1"), "", 0},
		"deleted and written":        {[]Operation{op(Write, "1", Done, 1, 2), op(Write, "2", Done, 1, 4)}, cluster("1", Absent, "2", Absent), "", 0},
		"again before it ends":       {[]Operation{op(Write, "1", Done, 1, 9), op(Write, "2", Done, 1, 9)}, cluster("1", "2", "1"), "", 1},
		"again after it has ended":   {[]Operation{op(Write, "1", Done, 0, 1), op(Write, "2", Done, 1, 9)}, cluster("1", "2", "2", "1"), "after its end", 0},
		"after its deadline":         {[]Operation{late}, cluster("2", "3", "4", "5", "1"), "after its end", 0},
		"again by nobody":            {nil, cluster("1", Absent, "1"), "no operation has written it", 0},
		"never":                      {[]Operation{op(Write, "1", Done, 1, 2)}, cluster("2"), "without effect", 0},
		"in spite of a failure":      {[]Operation{op(Write, "1", Failed, 1, 2)}, cluster("1"), "with an effect", 0},
		"read but not written":       {[]Operation{op(Read, "7", Done, 1, 2)}, cluster("1"), "never had", 0},
	} {
		t.Run(name, func(t *testing.T) {
			result := CheckEffects(tt.ops, tt.cluster)
			got := result.Violations
			if tt.want == "" && len(got) > 0 || tt.want != "" && (len(got) != 1 || !strings.Contains(got[0], tt.want)) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if len(result.Repeated) != tt.repeated {
				t.Errorf("got %v as repeated, want %d", result.Repeated, tt.repeated)
			}
		})
	}
}

// TestEffectsAroundRestores lets a cluster become as it was: what is undone was an effect, and what comes back is none.
func TestEffectsAroundRestores(t *testing.T) {
	at := func(n int, value string, isRestored bool) Version {
		return Version{UID: "u", Version: uint64(n), Value: value, At: time.Duration(n) * time.Second, IsRestored: isRestored}
	}
	done := []Operation{op(Write, "1", Done, 0, 2), op(Write, "2", Done, 1, 3), op(Write, "3", Done, 4, 6)}
	for name, tt := range map[string]struct {
		versions []Version
		want     string // part of the only finding; empty for none
	}{
		"undone":                                {[]Version{at(1, "1", false), at(2, "2", false), at(1, "1", true), at(5, "3", false)}, ""},
		"all undone":                            {[]Version{at(1, "1", false), at(2, "2", false), at(0, Absent, true), at(5, "3", false)}, ""},
		"took effect again after it was undone": {[]Version{at(1, "1", false), at(2, "2", false), at(1, "1", true), at(5, "3", false), at(9, "2", false)}, "after its end"},
		"never before or after":                 {[]Version{at(1, "1", false), at(1, "1", true), at(5, "3", false)}, "without effect"},
	} {
		got := CheckEffects(done, map[string][]Version{"x": tt.versions}).Violations
		if tt.want == "" && len(got) > 0 || tt.want != "" && (len(got) != 1 || !strings.Contains(got[0], tt.want)) {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}

func TestBeforeRestores(t *testing.T) {
	ops := []Operation{op(Write, "1", Done, 1, 2), op(Write, "2", Done, 3, 6), op(Read, "1", Done, 3, 4), op(Read, "2", Done, 4, 6), op(Write, "3", Unknown, 4, 0),
		op(Write, "4", Failed, 4, 4), op(Write, "5", Done, 7, 8), op(Read, "1", Done, 8, 9)}
	for i := range ops {
		ops[i].Object = "a/x"
	}
	other := op(Read, "1", Done, 7, 8)
	other.Object = "b/x"
	var got []string
	for _, o := range BeforeRestores(append(ops, other), map[string]time.Duration{"a": 5 * time.Second}) {
		got = append(got, fmt.Sprint(o.Object, " ", o.Verb, " ", o.Value, " ", o.Outcome))
	}
	if want := []string{"a/x write 1 done", "a/x write 2 unknown", "a/x read 1 done", "a/x write 3 unknown", "a/x write 4 failed", "b/x read 1 done"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func present(version uint64) Event {
	return Event{Type: Present, Object: "x", UID: "u", Version: version}
}

var (
	deleted = Event{Type: Deleted, Object: "x"}
	ready   = Event{Type: Ready}
	restart = Event{Type: Restart}
)

func TestEvents(t *testing.T) {
	exists := []Version{{UID: "u", Version: 1, Value: "a"}, {UID: "u", Version: 2, Value: "b"}, {UID: "u", Version: 3, Value: "c"}}
	gone := append(slices.Clone(exists), Version{UID: "u", Version: 4, Value: Absent})
	again := append(slices.Clone(gone), Version{UID: "w", Version: 5, Value: "d"})
	restored := append(slices.Clone(gone), Version{UID: "u", Version: 2, Value: "b", IsRestored: true}, Version{UID: "u", Version: 3, Value: "e"})
	undone := append(slices.Clone(exists), Version{Value: Absent, IsRestored: true})
	for name, tt := range map[string]struct {
		events  []Event
		cluster []Version
		want    string // part of the only finding; empty for none
	}{
		"in order":                       {[]Event{restart, ready, present(1), present(2), present(3)}, exists, ""},
		"some are merged":                {[]Event{restart, ready, present(1), present(3)}, exists, ""},
		"resumed":                        {[]Event{restart, ready, present(1), restart, present(3), ready}, exists, ""},
		"deleted while not connected":    {[]Event{restart, ready, present(1), restart, ready}, gone, ""},
		"deleted and created":            {[]Event{restart, ready, present(1), deleted, {Present, "x", "w", 5}}, again, ""},
		"deleted while it is listed":     {[]Event{restart, present(1), ready, deleted}, gone, ""},
		"created and deleted at once":    {[]Event{restart, ready, deleted}, gone, ""},
		"the last version is sent again": {[]Event{restart, ready, present(3), present(3)}, exists, ""},
		"restored":                       {[]Event{restart, ready, present(1), present(3), present(2), present(3)}, restored, ""},
		"restored after its deletion":    {[]Event{restart, ready, present(2), deleted, present(2), present(3)}, restored, ""},
		"a restart before it is read":    {[]Event{restart, ready, present(3), restart, present(UnknownVersion), ready, present(3)}, exists, ""},
		"older after an unknown version": {[]Event{restart, ready, present(3), present(UnknownVersion), present(2), present(3)}, exists, "goes back"},
		"undone by a restore":            {[]Event{restart, ready, present(1), deleted}, undone, ""},
		"back behind a restore":          {[]Event{restart, ready, present(2), present(3), present(2), present(3), present(1), present(3)}, restored, "goes back"},
		"a version that never was":       {[]Event{restart, ready, {Present, "x", "w", 2}, present(3)}, exists, "never had"},
		"an old version comes back":      {[]Event{restart, ready, present(1), present(3), present(1), present(3)}, exists, "goes back"},
		"older after a restart":          {[]Event{restart, ready, present(3), restart, present(2), ready, present(3)}, exists, "goes back"},
		"deleted twice":                  {[]Event{restart, ready, present(3), deleted, deleted}, gone, "for the 2. time"},
		"deleted without reason":         {[]Event{restart, ready, present(1), deleted, present(3)}, exists, "for the 1. time"},
		"a double event after deletion":  {[]Event{restart, ready, present(3), deleted, present(3), {Present, "x", "w", 5}}, again, "comes back after its deletion"},
		"the last one is lost":           {[]Event{restart, ready, present(1), present(2)}, exists, "but it is u at 3"},
		"a deletion is lost":             {[]Event{restart, ready, present(1), present(2)}, gone, "but it was deleted"},
		"all are lost":                   {[]Event{restart, ready}, exists, "or lost"},
		"another object of the name":     {[]Event{restart, ready, present(3)}, again, "but it is w at 5"},
	} {
		t.Run(name, func(t *testing.T) {
			checked := CheckEvents(tt.events, map[string][]Version{"x": tt.cluster})
			got := append(checked.Violations, CompareFinal(checked.Last, map[string]Version{"x": tt.cluster[len(tt.cluster)-1]})...)
			if tt.want == "" && len(got) > 0 || tt.want != "" && (len(got) != 1 || !strings.Contains(got[0], tt.want)) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if name == "the last version is sent again" && checked.Repeated != 1 {
				t.Errorf("got %d repeated events, want 1", checked.Repeated)
			}
		})
	}
	held := map[string]Event{"y": {Present, "y", "u", 3}}
	if got := CompareFinal(held, nil); len(got) != 1 || !strings.Contains(got[0], "never had it") {
		t.Errorf("an object that never was: got %q", got)
	}
}
