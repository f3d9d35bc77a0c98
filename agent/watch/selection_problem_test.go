package watch

import (
	"slices"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
)

func TestSelectionProblemsSuggestKinds(t *testing.T) {
	for _, tt := range []struct {
		name     string
		unserved []string
		feeds    int
		want     string
	}{
		{"everything is served", nil, 3, ""},
		{"a misspelt kind", []string{"Deploymnet"}, 0, `the cluster does not serve the kind "Deploymnet": did you mean Deployment?`},
		{"a misspelt group", []string{"Job.army.io"}, 1, `the cluster does not serve the kind "Job.army.io": did you mean Job.armory.io`},
		{"nothing is similar", []string{"Xylophone"}, 1, `the cluster does not serve the kind "Xylophone"`},
		{"several", []string{"Podd", "Xylophone"}, 1, `did you mean Pod`},
		{"a kind that is never watched", []string{"ev"}, 1, `the kind "ev" is never watched`},
		{"more than a message names", []string{"aa", "bb", "cc", "dd", "ee", "ff", "gg"}, 1, "; and 2 more kinds"},
		{"a selection that omits everything", nil, 0, "selects nothing in this cluster: check kinds, omitKinds"},
	} {
		got := describeSelectionProblem(testCatalogue(), tt.unserved, tt.feeds)
		if !strings.Contains(got, tt.want) || (tt.want == "") != (got == "") {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestUnservedKindsAreConfirmed checks that incomplete discovery reports no kind as not served.
func TestUnservedKindsAreConfirmed(t *testing.T) {
	for _, tt := range []struct {
		name     string
		rechecks int
		before   []string
		unserved []string
		unknown  []string
		want     []string
	}{
		{"complete discovery", 0, nil, []string{"podd"}, nil, []string{"podd"}},
		{"kinds have just disappeared", 1, nil, []string{"widget"}, nil, nil},
		{"but this one was missing before", 1, []string{"podd"}, []string{"podd", "widget"}, nil, []string{"podd"}},
		{"its group is unknown", 0, nil, []string{"Widget.example.org", "podd"}, []string{"example.org"}, []string{"podd"}},
	} {
		w := &Watcher{rechecks: tt.rechecks, unservedKinds: tt.before}
		if got := w.confirmUnserved(tt.unserved, tt.unknown); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestDenialsChangeOnce checks that a set of denied feeds is reported once, whatever its
// order and however often its feeds are retried.
func TestDenialsChangeOnce(t *testing.T) {
	var d denials
	defer d.close()
	feed := func(name string) vedette.Feed { return vedette.Feed{Kind: vedette.Kind{Name: name}} }
	add := func(names ...string) {
		for _, name := range names {
			d.add(feed(name), "RBAC denied "+name, 0, func() {})
		}
	}
	expect := func(step, want, wantReason string) {
		t.Helper()
		c := d.takeChange()
		if got := strings.Join(c.names, " "); c.differs != (want != "unchanged") || c.differs && (got != want || c.reason != wantReason) {
			t.Errorf("%s: got %q because of %q, changed %v; want %q", step, got, c.reason, c.differs, want)
		}
	}
	expect("at first", "unchanged", "")
	add("Service", "Pod")
	expect("two are denied", "Pod Service", "RBAC denied Pod")
	add("Pod", "Service", "Pod")
	expect("they are retried", "unchanged", "")
	d.remove(feed("Pod"))
	d.remove(feed("Job"))
	expect("one is allowed", "Service", "RBAC denied Service")
	d.remove(feed("Service"))
	expect("all are allowed", "", "")
	expect("nothing has changed", "unchanged", "")
}
