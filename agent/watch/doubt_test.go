package watch

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
)

func TestDoubt(t *testing.T) {
	widgets := vedette.Feed{Kind: vedette.Kind{Group: "example.org", Name: "Widget"}}
	pods := vedette.Feed{Kind: vedette.Kind{Name: "Pod"}}
	gadgets := vedette.Feed{Kind: vedette.Kind{Group: "example.org", Name: "Gadget"}}
	three := []Wanted{{Feed: pods}, {Feed: widgets}, {Feed: gadgets}}
	both, one := []Wanted{{Feed: pods}, {Feed: widgets}}, []Wanted{{Feed: pods}}
	marked := map[vedette.Feed]vedette.Mark{widgets: "7"}
	tests := []struct {
		why      string
		declared []Wanted // before
		marks    map[vedette.Feed]vedette.Mark
		looks    [][]Wanted // what discovery comes to, one time after the other
		want     string     // groups that are doubted, and after which look to ask again
	}{
		{"nothing was there before", nil, nil, [][]Wanted{one}, "[] 0"},
		{"all is there", both, nil, [][]Wanted{both}, "[] 0"},
		{"what is gone is believed the third time", both, nil, [][]Wanted{one, one, one, one}, "[example.org] 1, [example.org] 2, [] 3, [] 0"},
		{"what comes back is not counted on", both, nil, [][]Wanted{one, one, both, one}, "[example.org] 1, [example.org] 2, [] 0, [example.org] 1"},
		{"of two that go one after the other, the later is asked for as soon", three, nil, [][]Wanted{both, one, one, one},
			"[example.org] 1, [example.org] 2, [example.org] 2, [] 3"},
		{"the server holds it from another agent's time", nil, marked, [][]Wanted{one, both}, "[example.org] 1, [] 0"},
	}
	for _, tt := range tests {
		t.Run(tt.why, func(t *testing.T) {
			w := &Watcher{declared: tt.declared}
			var got []string
			for _, wanted := range tt.looks {
				groups := w.doubt(wanted, tt.marks)
				got = append(got, fmt.Sprint(groups, w.looks))
			}
			if s := strings.Join(got, ", "); s != tt.want {
				t.Errorf("doubted %s\nwant    %s", s, tt.want)
			}
		})
	}
}
