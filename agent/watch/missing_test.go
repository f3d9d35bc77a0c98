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
		why         string
		declared    []FeedSpec // before
		marks       map[vedette.Feed]vedette.Mark
		discoveries [][]FeedSpec // what discovery comes to, one time after the other
		want        string       // groups that are doubted, and after which look to ask again
	}{
		{"nothing was there before", nil, nil, [][]FeedSpec{oneSpec}, "[] 0"},
		{"all is there", twoSpecs, nil, [][]FeedSpec{twoSpecs}, "[] 0"},
		{"what is gone is believed the third time", twoSpecs, nil, [][]FeedSpec{oneSpec, oneSpec, oneSpec, oneSpec}, "[example.org] 1, [example.org] 2, [] 3, [] 0"},
		{"what comes back is not counted on", twoSpecs, nil, [][]FeedSpec{oneSpec, oneSpec, twoSpecs, oneSpec}, "[example.org] 1, [example.org] 2, [] 0, [example.org] 1"},
		{"of two that go one after the other, the later is asked for as soon", threeSpecs, nil, [][]FeedSpec{twoSpecs, oneSpec, oneSpec, oneSpec},
			"[example.org] 1, [example.org] 2, [example.org] 2, [] 3"},
		{"the server holds it from another agent's time", nil, marked, [][]FeedSpec{oneSpec, twoSpecs}, "[example.org] 1, [] 0"},
	}
	for _, tt := range tests {
		t.Run(tt.why, func(t *testing.T) {
			w := &Watcher{declared: tt.declared}
			var got []string
			for _, specs := range tt.discoveries {
				groups := w.suspectMissing(specs, tt.marks)
				got = append(got, fmt.Sprint(groups, w.rechecks))
			}
			if s := strings.Join(got, ", "); s != tt.want {
				t.Errorf("doubted %s\nwant    %s", s, tt.want)
			}
		})
	}
}
