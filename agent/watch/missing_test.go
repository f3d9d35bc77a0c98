package watch

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
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
				groups := w.suspectMissing(specs, tt.marks)
				got = append(got, fmt.Sprint(groups, w.rechecks))
			}
			if s := strings.Join(got, ", "); s != tt.want {
				t.Errorf("got  %s\nwant %s", s, tt.want)
			}
		})
	}
}
