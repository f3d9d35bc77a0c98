package dispatch

import (
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
)

// What a second process says of an operation that the first one had tells nothing
// of what the first one did.
func TestFailureOfTheSecondProcess(t *testing.T) {
	onStage(t, func(s *stage) {
		a := s.connect("a", "1")
		s.do("del", vedette.DeleteArgs{Target: web})
		s.do("read", read)
		s.do("ok", scale)
		s.cut(a)
		s.heard()
		b := s.connect("b", "2")
		s.heard()
		b.answers(vedette.Outcome{ID: "del", State: vedette.Failed, Status: 404, Message: "deployments \"web\" not found"})
		got := s.heard()
		for _, want := range []string{"del lost 504 it is unknown whether this took effect: it was sent to agent a at", "then to agent b, where it failed: deployments \"web\" not found"} {
			if !strings.Contains(got, want) {
				t.Errorf("%q is not in %s", want, got)
			}
		}
		b.answers(vedette.Outcome{ID: "read", State: vedette.Failed, Status: 404})
		s.want("b/2 may forget read", "read failed 404 ")
		b.done("ok")
		s.want("b/2 may forget ok", "ok done 200 ")
	})
}
