package watch

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
)

func TestMissingFeedsAreRechecked(t *testing.T) {
	widgets := vedette.Feed{Kind: vedette.Kind{Group: "example.org", Name: "Widget"}}
	pods := vedette.Feed{Kind: vedette.Kind{Name: "Pod"}}
	gadgets := vedette.Feed{Kind: vedette.Kind{Group: "example.org", Name: "Gadget"}}
	threeSpecs := []FeedSpec{{Feed: pods}, {Feed: widgets}, {Feed: gadgets}}
	twoSpecs, oneSpec := []FeedSpec{{Feed: pods}, {Feed: widgets}}, []FeedSpec{{Feed: pods}}
	marked := map[vedette.Feed]vedette.Mark{widgets: "7"}
	tests := []struct {
		name        string
		declared    []FeedSpec // before
		marks       map[vedette.Feed]vedette.Mark
		discoveries [][]FeedSpec // the results of discovery, in order
		want        string       // suspect groups and the number of rechecks, after each discovery
	}{
		{"no feeds before", nil, nil, [][]FeedSpec{oneSpec}, "[] 0"},
		{"no feed missing", twoSpecs, nil, [][]FeedSpec{twoSpecs}, "[] 0"},
		{"a missing feed counts as gone the third time", twoSpecs, nil, [][]FeedSpec{oneSpec, oneSpec, oneSpec, oneSpec}, "[example.org] 1, [example.org] 2, [] 3, [] 0"},
		{"a feed that comes back resets the count", twoSpecs, nil, [][]FeedSpec{oneSpec, oneSpec, twoSpecs, oneSpec}, "[example.org] 1, [example.org] 2, [] 0, [example.org] 1"},
		{"two feeds that disappear one after the other are rechecked at the same pace", threeSpecs, nil, [][]FeedSpec{twoSpecs, oneSpec, oneSpec, oneSpec},
			"[example.org] 1, [example.org] 2, [example.org] 2, [] 3"},
		{"the server knows the feed from another agent", nil, marked, [][]FeedSpec{oneSpec, twoSpecs}, "[example.org] 1, [] 0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := &Watcher{declared: tt.declared}
			var got []string
			for _, specs := range tt.discoveries {
				groups := w.suspectMissing(kube.Catalogue{}, specs, maps.Clone(tt.marks))
				got = append(got, fmt.Sprint(groups, w.rechecks))
			}
			if s := strings.Join(got, ", "); s != tt.want {
				t.Errorf("got  %s\nwant %s", s, tt.want)
			}
		})
	}
}

// TestMarksOfGoneFeedsAreVoid checks that a feed that counts as gone loses its mark, because the
// server removes its objects: a kind that comes back later must be listed.
func TestMarksOfGoneFeedsAreVoid(t *testing.T) {
	widgets := vedette.Feed{Kind: vedette.Kind{Group: "example.org", Name: "Widget"}}
	marks := map[vedette.Feed]vedette.Mark{widgets: "7"}
	w := &Watcher{}
	unknown := kube.Catalogue{UnknownGroups: []string{"example.org"}}
	for i, cat := range []kube.Catalogue{unknown, {}, {}, unknown, {}, {}} {
		w.suspectMissing(cat, nil, marks)
		if marks[widgets] != "7" {
			t.Fatalf("discovery %d: the mark is void, although the kind was not omitted three times in a row", i+1)
		}
	}
	w.suspectMissing(kube.Catalogue{}, nil, marks)
	if len(marks) != 0 {
		t.Errorf("got marks %v, want none after the feed counted as gone", marks)
	}
}

// TestServedKindsAreNotMissing checks that a feed that the selection decides against goes at once,
// because discovery has not omitted its kind.
func TestServedKindsAreNotMissing(t *testing.T) {
	kind := vedette.Kind{Group: "example.org", Name: "Widget"}
	inNamespace := FeedSpec{Feed: vedette.Feed{Kind: kind, Namespace: "a"}, Resource: vedette.Resource{Kind: kind, Plural: "widgets", Namespaced: true}}
	other := FeedSpec{Feed: vedette.Feed{Kind: kind}, Resource: vedette.Resource{Kind: kind, Plural: "widgets"}}
	cat := kube.Catalogue{Resources: []vedette.Resource{other.Resource}, UnknownGroups: []string{"example.org"}}
	w := &Watcher{declared: []FeedSpec{inNamespace}}
	if groups := w.suspectMissing(cat, []FeedSpec{other}, nil); len(groups) != 0 {
		t.Errorf("got suspect groups %v, want none", groups)
	}
	if specs := w.keepUnknownGroups(cat, []FeedSpec{other}); len(specs) != 1 || specs[0].Feed != other.Feed {
		t.Errorf("got %v, want only the feed of all namespaces: the server rejects both together", specs)
	}
}

// TestUnknownGroupsKeepTheirVersions checks what a feed of an unknown group is read with: the version
// before, but not another plural.
func TestUnknownGroupsKeepTheirVersions(t *testing.T) {
	kind := vedette.Kind{Group: "example.org", Name: "Widget"}
	spec := func(version, plural string) FeedSpec {
		return FeedSpec{Feed: vedette.Feed{Kind: kind}, Resource: vedette.Resource{Kind: kind, Version: version, Plural: plural}}
	}
	w := &Watcher{declared: []FeedSpec{spec("v2", "widgets")}}
	for _, tt := range []struct{ now, want FeedSpec }{
		{spec("v1", "widgets"), spec("v2", "widgets")},
		{spec("v1", "wodgets"), spec("v1", "wodgets")},
	} {
		cat := kube.Catalogue{Resources: []vedette.Resource{tt.now.Resource}, UnknownGroups: []string{"example.org"}}
		if specs := w.keepUnknownGroups(cat, []FeedSpec{tt.now}); len(specs) != 1 || !sameSpec(specs[0], tt.want) {
			t.Errorf("discovered as %s/%s: got %v", tt.now.Resource.Version, tt.now.Resource.Plural, specs)
		}
	}
}
