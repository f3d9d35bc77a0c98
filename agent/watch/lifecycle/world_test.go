package lifecycle

import (
	"fmt"
	"time"

	"github.com/vedette-io/vedette"
)

var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// world is a feed, with a cluster of one object and what the effects have done. It is copied by value.
type world struct {
	Feed
	underway Effect // List, Watch, Pause or Rest
	answered bool   // the API server has accepted the request of List or Watch
	hasTaken bool   // the sink has taken Begin
	ending   bool   // the sink has not taken End

	exists   bool // the object, in the cluster
	isListed bool // in the list that runs
	isPassed bool // from the list that runs to the sink
	last     int  // resourceVersion

	// What the sink has received.
	sinkMark   vedette.Mark // up to which it has everything
	inSnapshot bool
	isStored   bool // the object, as far as the current snapshot or the stream of changes says
	state      Report
	isStalled  bool

	resetOwed *vedette.Mark
	anewOwed  bool // a snapshot that begins from now on must replace what is stored
	anewBegun bool
	tries     int  // lists and watches since something else than an error came of one, or a pause
	reporting bool // the last event has led to a Report
	happened  []Effect
	problems  []string
}

func newWorld(mark vedette.Mark) world {
	return world{Feed: *New(mark), exists: true, last: 10, sinkMark: mark, isStored: mark != ""}
}

func (w *world) problem(format string, args ...any) {
	w.problems = append(w.problems, fmt.Sprintf(format, args...))
}

func (w *world) nextVersion() vedette.Mark {
	w.last++
	return vedette.Mark(fmt.Sprint(w.last))
}

// item lets the list bring the object.
func (w *world) item() {
	if !w.inSnapshot && !w.isInterrupting {
		w.problem("an object of a list comes without a snapshot")
	}
	w.isPassed, w.isStored = true, true
}

// happen lets an event happen, with what it means besides its effects.
func (w *world) happen(e Event) {
	wasInterrupting := w.isInterrupting
	w.happened, w.reporting = nil, false
	isWant := true
	switch e := e.(type) {
	case ResetWanted:
		w.resetOwed = &e.From
	case AnewWanted:
		w.anewOwed, w.anewBegun, w.tries = true, false, 0
	case ReconnectWanted, Reached, ReportLost:
	case Interrupted:
		w.underway, w.ending, w.tries = nil, false, 0
	default:
		isWant = false
		w.prepare(e)
	}
	effects := w.Step(e, began)
	if wasInterrupting && !isWant && len(effects) > 0 {
		w.problem("%T has effects although the feed is interrupted", e)
	}
	for _, effect := range effects {
		w.do(effect)
	}
	if failed, ok := e.(Failed); ok && !wasInterrupting && failed.Failure.State != vedette.FeedSyncing && w.state.State != failed.Failure.State {
		w.problem("it has failed, and reports %q", w.state.State)
	}
	w.check()
}

// prepare does what an event says that has happened, unless it is ignored.
func (w *world) prepare(e Event) {
	if w.isInterrupting {
		return
	}
	switch e := e.(type) {
	case ListAccepted:
		w.answered, w.isListed, w.isPassed = true, w.exists, false
	case Begun:
		w.hasTaken = true
	case ListRestarted:
		w.answered, w.hasTaken, w.isPassed, w.ending = false, false, false, false
	case Taken:
		w.sinkMark, w.inSnapshot, w.ending, w.underway = w.listed, false, false, nil
		w.anewOwed = w.anewOwed && !w.anewBegun
	case WatchOpened:
		w.answered = true
	case Changed:
		if w.inSnapshot {
			w.problem("a change comes within a snapshot")
		}
		w.sinkMark, w.tries = e.Mark, 0
	case Lasted:
		w.tries = 0
	case WatchEnded:
		if e.End == EndedOverdue || e.End == EndedSilent {
			w.tries = 0 // it took minutes
		}
		w.underway = nil
	case Failed, PauseOver:
		w.underway, w.ending = nil, false
	}
}

func (w *world) do(effect Effect) {
	w.happened = append(w.happened, effect)
	switch effect := effect.(type) {
	case List, Watch, Pause, Rest:
		w.begin(effect)
	case Begin:
		w.begun(effect)
	case End:
		w.end(effect)
	case Report:
		w.report(effect)
	case ReportStall:
		w.isStalled = true
	case ClearStall:
		w.isStalled = false
	}
}

func (w *world) begin(effect Effect) {
	if w.underway != nil {
		w.problem("%T while %T is under way", effect, w.underway)
	}
	if w.resetOwed != nil && !w.isInterrupting && w.reset == nil {
		w.problem("%T before the reset was reported", effect)
	}
	w.underway, w.answered, w.hasTaken = effect, false, false
	switch effect := effect.(type) {
	case Watch:
		w.tries++
		if effect.Mark == "" || effect.Mark != w.sinkMark {
			w.problem("it watches from %q, and the sink has everything up to %q", effect.Mark, w.sinkMark)
		}
		if w.anewOwed {
			w.problem("it goes on although it is to be read anew")
		}
	case List:
		w.tries++
	case Pause:
		w.tries = 0
		if effect.Delay == NoDelay {
			w.problem("it pauses without a delay")
		}
	}
}

func (w *world) begun(effect Begin) {
	if _, lists := w.underway.(List); !lists || !w.answered {
		w.problem("a snapshot begins without a list")
	}
	w.inSnapshot, w.isStored = true, false
	w.anewBegun = w.anewBegun || effect.Anew
}

func (w *world) end(effect End) {
	switch {
	case !w.inSnapshot || !w.answered:
		w.problem("a snapshot ends that has not begun")
	case w.isStored != w.isListed:
		w.problem("a snapshot ends with the object: %v, and the list had it: %v", w.isStored, w.isListed)
	case effect.Mark == "":
		w.problem("a snapshot ends without a mark")
	}
	w.ending = true
}

func (w *world) report(effect Report) {
	w.reporting = true
	if w.resetOwed != nil && !w.isInterrupting {
		if effect.State != vedette.FeedPending || effect.Mark != *w.resetOwed {
			w.problem("it reports %v before the reset to %q", effect, *w.resetOwed)
		}
		w.sinkMark, w.inSnapshot, w.resetOwed = effect.Mark, false, nil
	}
	if effect.State == vedette.FeedLive && (w.inSnapshot || w.sinkMark == "") {
		w.problem("it is live without a complete list")
	}
	if effect.State == vedette.FeedLive && !w.answered {
		w.problem("it is live without an answer")
	}
	w.state = effect
}

// maxTries is how many lists and watches may follow each other without a pause: a mark expires twice, and each time a proxy ends the watch of
// the new list at once.
const maxTries = 8

// check checks what must hold after each event.
func (w *world) check() {
	if w.underway == nil {
		w.problem("nothing is under way")
	}
	if w.tries > maxTries {
		w.problem("it tries for the %dth time without a pause", w.tries)
	}
	isSilent := w.wasSilent && w.state.State == vedette.FeedFailing
	if w.phase == Watching && w.state.State != vedette.FeedLive && !isSilent {
		w.problem("it watches, and reports %q", w.state.State)
	}
	if w.state.State == vedette.FeedLive && w.isStalled && w.phase == Watching {
		w.problem("it is live, and the account's state says that it does not get on")
	}
	_, isListing := w.underway.(List)
	if want := isListing && w.Feed.isAnew && !w.hasTaken; w.IsBeginningAnew() != want {
		w.problem("it begins anew: %v, want %v", w.IsBeginningAnew(), want)
	}
	if w.wasSilent && w.phase == Pausing && w.state.State == vedette.FeedLive {
		w.problem("it is live although it has no news")
	}
}

// The errors that feeds know, as package watch classifies them.
var failures = []struct {
	name string
	Failure
}{
	{"expired", Failure{State: vedette.FeedSyncing, Message: "expired", DropMark: true}},
	{"malformed", Failure{State: vedette.FeedFailing, Message: "malformed", Delay: Backoff, CountsAgainstMark: true}},
	{"unauthorized", Failure{State: vedette.FeedDenied, Message: "401", Delay: LongDelay, ReloadCredentials: true}},
	{"unreachable", Failure{State: vedette.FeedFailing, Message: "no route", Delay: Backoff, IsUnreachable: true, IsConnLost: true}},
	{"stalled", Failure{State: vedette.FeedFailing, Message: "stall", Delay: Backoff, CountsAgainstMark: true, IsUnreachable: true, IsStall: true}},
	{"gone", Failure{State: vedette.FeedFailing, Message: "404", Delay: Backoff, Rediscover: true}},
}

// natural returns the events that what is under way may bring; nil in place of the event that brings the object of a list.
func (w *world) natural() (events []Event) {
	for _, f := range failures {
		events = append(events, Failed{f.Failure})
	}
	switch w.underway.(type) {
	case List:
		switch {
		case w.ending:
			return append(events, Taken{})
		case !w.answered:
			return append(events, ListAccepted{})
		case !w.hasTaken:
			return append(events, Begun{})
		case w.isListed && !w.isPassed:
			return append(events, nil, ListRestarted{})
		}
		return append(events, Listed{w.nextVersion()}, ListRestarted{})
	case Watch:
		if !w.answered {
			return append(events, WatchOpened{})
		}
		events = append(events, Changed{w.nextVersion()}, Lasted{})
		for _, end := range []WatchEnd{EndedByServer, EndedEarly, EndedSilent, EndedOverdue} {
			events = append(events, WatchEnded{end})
		}
		return events
	case Pause:
		return []Event{PauseOver{}}
	}
	return nil
}

// possible returns the events that may happen; nil in place of the event that brings the object of a list.
func (w *world) possible() []Event {
	events := append(w.natural(), ResetWanted{}, ResetWanted{w.sinkMark}, AnewWanted{}, ReconnectWanted{}, ReconnectWanted{began.Add(1)}, Reached{})
	if w.isInterrupting {
		events = append(events, Interrupted{})
		if w.reporting {
			events = append(events, ReportLost{})
		}
	}
	return events
}

// helpful returns the event that comes if the API server and the sink do what they should.
func (w *world) helpful() Event {
	if w.isInterrupting {
		return Interrupted{}
	}
	events := w.natural()
	for _, e := range events {
		switch e.(type) {
		case Taken, ListAccepted, Begun, nil, Listed, WatchOpened, PauseOver:
			return e
		}
	}
	return Changed{w.nextVersion()}
}
