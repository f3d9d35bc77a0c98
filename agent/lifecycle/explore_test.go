package lifecycle

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette/internal/golden"
	"github.com/vedette-io/vedette/test/statediagram"
)

var begin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// run is an account with what its effects have done.
type run struct {
	*Account
	connected, watching, retrying bool
	asked                         bool // Connect or Identify has no answer yet
	reported                      Report
	problems                      []string
}

func (r *run) problem(format string, args ...any) {
	r.problems = append(r.problems, fmt.Sprintf(format, args...))
}

// step handles an event, and does what its effects ask for. What they ask the cluster, other events answer.
func (r *run) step(e Event) {
	effects := r.Step(e, begin)
	if _, watches := e.(Watching); watches && r.State() == Reporting {
		r.watching = true
	}
	for _, effect := range effects {
		r.do(effect)
	}
}

func (r *run) do(effect Effect) {
	switch effect := effect.(type) {
	case Connect:
		if r.connected || r.watching {
			r.problem("it connects while it is connected")
		}
		r.asked, r.retrying = true, false
	case Identify:
		r.asked, r.retrying = true, false
	case Watch:
		if !r.connected {
			r.problem("it watches without a cluster")
		}
	case StopWatching:
		r.watching = false
	case Disconnect:
		if r.watching {
			r.problem("it disconnects while it watches")
		}
		r.connected = false
	case Deregister, Forget:
		if r.watching {
			r.problem("%T while it watches", effect)
		}
	case Register:
		if !r.connected {
			r.problem("it registers without a cluster")
		}
	case Retry:
		r.retrying = true
	case StopRetry:
		r.retrying = false
	case Report:
		r.reported = effect
		if (effect.State == Refused) != (effect.Err != nil) && effect.State != Reaching {
			r.problem("it reports %v", effect)
		}
	case ResetRetry, LogUnreachable, LogRefused, LogWatchFailed:
	}
}

// check checks what must hold after each event.
func (r *run) check() {
	if r.hasEnded {
		if r.connected || r.watching {
			r.problem("it has ended, and is connected or watches")
		}
		return
	}
	if r.reported.State != "" && r.reported.State != r.State() {
		r.problem("it is %s, and has reported %s", r.State(), r.reported.State)
	}
	if r.State() == Reporting && !r.watching {
		r.problem("it reports and does not watch")
	}
	if r.connected != r.isConnected {
		r.problem("connected: %v, believes %v", r.connected, r.isConnected)
	}
	if !r.connected && !r.asked && !r.retrying {
		r.problem("nothing leads to the cluster")
	}
	if r.State() == Refused && !r.retrying && !r.asked {
		r.problem("it is refused, and does not try again")
	}
}

// possible returns the events that may happen.
func (r *run) possible() []Event {
	if r.hasEnded {
		return nil
	}
	all := []Event{Stopped{}}
	if r.asked {
		all = append(all, ConnectFailed{errors.New("no route")}, Connected{})
	}
	if r.retrying {
		all = append(all, RetryDue{})
	}
	if !r.connected {
		return append(all, CredentialsMayHaveChanged{})
	}
	all = append(all, ClusterChanged{}, PropertiesChanged{}, Assigned{Role: RoleStandby}, Assigned{Role: RoleRefused, Reason: "no"},
		Assigned{Role: RoleCacher}, Watching{})
	if r.watching {
		all = append(all, WatchFailed{errors.New("a bug")})
	}
	return all
}

// happen lets an event happen, with what it means besides its effects.
func (r *run) happen(e Event) {
	switch e.(type) {
	case Connected:
		r.connected, r.asked = true, r.connected // the server answers the registration
	case ConnectFailed:
		r.asked = false
	case RetryDue:
		r.retrying = false
	}
	wasRefused := r.State() == Refused
	r.step(e)
	if (r.State() == Standby || r.State() == Reporting) && wasRefused && r.retrying {
		r.problem("it registers again although it is not refused any more")
	}
}

// TestInvariantsHoldInEveryOrder runs all orders of eight events, and checks what must always hold.
func TestInvariantsHoldInEveryOrder(t *testing.T) {
	diagram := statediagram.Diagram{Initial: string(Reaching)}
	seen, events := map[string]bool{}, 0
	frontier := [][]Event{{Started{}}}
	for range 8 {
		var next [][]Event
		for _, path := range frontier {
			for _, e := range replay(path).possible() {
				r := replay(path)
				from := r.State()
				r.happen(e)
				r.check()
				events++
				longer := append(slices.Clip(path), e)
				if len(r.problems) > 0 {
					t.Fatalf("after %s: %s", names(longer), strings.Join(r.problems, "; "))
				}
				diagram.Add(string(from), string(r.State()), nameOf(e))
				if state := fmt.Sprint(r.State(), r.connected, r.watching, r.retrying, r.asked, r.hasEnded); !seen[state] {
					seen[state] = true
					next = append(next, longer)
				}
			}
		}
		frontier = next
	}
	t.Logf("%d states, %d events", len(seen), events)
	golden.CompareSection(t, "../../docs/flow.md", "states of an agent's account", diagram.String())
}

func replay(path []Event) *run {
	r := &run{Account: New()}
	for _, e := range path {
		r.happen(e)
	}
	return r
}

func names(path []Event) string {
	var all []string
	for _, e := range path {
		all = append(all, fmt.Sprintf("%T%v", e, e))
	}
	return strings.Join(all, ", ")
}

func nameOf(e Event) string {
	if a, ok := e.(Assigned); ok {
		return statediagram.EventName(e) + " " + string(a.Role)
	}
	return statediagram.EventName(e)
}

// TestRefusalsAreLoggedOnceAMinute checks that the log says why an account is refused, and does not repeat
// it at each attempt to register.
func TestRefusalsAreLoggedOnceAMinute(t *testing.T) {
	a := New()
	a.Step(Started{}, begin)
	a.Step(Connected{}, begin)
	for _, tt := range []struct {
		after  time.Duration
		reason string
		want   bool
	}{
		{0, "another cluster has the name", true},
		{5 * time.Second, "another cluster has the name", false},
		{10 * time.Second, "an operator has removed the account", true},
		{59 * time.Second, "an operator has removed the account", false},
		{70 * time.Second, "an operator has removed the account", true},
	} {
		effects := a.Step(Assigned{Role: RoleRefused, Reason: tt.reason}, begin.Add(tt.after))
		if got := slices.ContainsFunc(effects, func(e Effect) bool { _, logs := e.(LogRefused); return logs }); got != tt.want {
			t.Errorf("after %s, %s: got %v, want %v", tt.after, tt.reason, got, tt.want)
		}
	}
}

// TestRetryThatSucceedsEndsTheFailure checks that the reason why a cluster cannot be reached is not shown any more once it was reached again,
// whatever the server answers, and also while it answers nothing.
func TestRetryThatSucceedsEndsTheFailure(t *testing.T) {
	for name, tt := range map[string]struct {
		watches bool
		want    State
	}{"nothing was watched": {false, Registered}, "the watches went on": {true, Reporting}} {
		a := New()
		events := []Event{Started{}, Connected{}, Assigned{Role: RoleRefused, Reason: "no"}}
		if tt.watches {
			events = append(events, Assigned{Role: RoleCacher}, Watching{})
		}
		var reported Report
		for _, e := range append(events, RetryDue{}, ConnectFailed{errors.New("no route")}, RetryDue{}, Connected{}) {
			for _, effect := range a.Step(e, begin) {
				if r, ok := effect.(Report); ok {
					reported = r
				}
			}
		}
		if want := (Report{State: tt.want}); reported != want || a.State() != tt.want {
			t.Errorf("%s: reported %v, want %v", name, reported, want)
		}
	}
}

// TestFailuresAreLoggedOnce checks that the log does not repeat why a cluster cannot be reached.
func TestFailuresAreLoggedOnce(t *testing.T) {
	a := New()
	a.Step(Started{}, begin)
	for i, failure := range []string{"no route", "no route", "timeout", "no route"} {
		effects := a.Step(ConnectFailed{errors.New(failure)}, begin)
		if got := slices.ContainsFunc(effects, func(e Effect) bool { _, logs := e.(LogUnreachable); return logs }); got != (i != 1) {
			t.Errorf("failure %d, %s: logged %v", i, failure, got)
		}
		a.Step(RetryDue{}, begin)
	}
}
