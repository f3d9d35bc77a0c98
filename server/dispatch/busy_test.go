package dispatch

import (
	"testing"

	"github.com/vedette-io/vedette"
)

// TestAccountIsBusyUntilTheOutcome checks from when to when an account is busy: from the acceptance of an operation,
// even if no agent is there, until its outcome. A stream of logs does not make it busy.
func TestAccountIsBusyUntilTheOutcome(t *testing.T) {
	runScenario(t, func(s *scenario) {
		expect := func(step string, want bool) {
			t.Helper()
			s.takeLog()
			if got := s.IsBusy("prod"); got != want {
				t.Errorf("%s: got %v, want %v", step, got, want)
			}
			if s.IsBusy("another") {
				t.Errorf("%s: another account is busy", step)
			}
		}
		expect("nothing runs", false)
		s.start("early", scale)
		expect("an operation waits for an agent", true)
		a := s.connect("a", "1")
		expect("it was sent", true)
		s.start("read", get)
		a.answerDone("early")
		expect("another one runs", true)
		s.disconnect(a)
		expect("the agent has disconnected", true)
		a = s.connect("a", "1")
		s.takeLog() // the operation is sent again
		a.answer(vedette.Outcome{ID: "read", State: vedette.Failed, Status: 404})
		expect("both have ended", false)
		stop := s.start("log", vedette.LogsArgs{Target: web, Follow: true})
		expect("a log is read", false)
		stop()
		expect("nobody reads the log", false)
	})
}
