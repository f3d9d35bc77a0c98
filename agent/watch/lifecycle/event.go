package lifecycle

import (
	"time"

	"github.com/vedette-io/vedette"
)

// Event is something that has happened.
type Event interface{ isEvent() }

// What becomes of List, Watch and Pause.
type (
	// Started begins.
	Started struct{}
	// ListAccepted means that the API server answers the list, before any object of the answer was passed on.
	ListAccepted struct{}
	// Begun means that the sink has taken Begin.
	Begun struct{}
	// ListRestarted means that the list begins again, so that the objects that were passed on count for nothing.
	ListRestarted struct{}
	// Listed means that all objects of a list as of Mark were passed on.
	Listed struct{ Mark vedette.Mark }
	// Taken means that the sink has taken End.
	Taken struct{}
	// WatchOpened means that the API server answers the watch.
	WatchOpened struct{}
	// Changed means that the sink has taken a change, or a bookmark, with a mark.
	Changed struct{ Mark vedette.Mark }
	// Skipped means that an object was left out. The message says which, and why.
	Skipped struct{ Message string }
	// Lasted means that the watch which ends now was open long enough to count as progress.
	Lasted struct{}
	// WatchEnded means that the watch has ended without an error.
	WatchEnded struct{ End WatchEnd }
	// Failed means that the list or the watch has failed.
	Failed struct{ Failure Failure }
	// PauseOver ends Pause.
	PauseOver struct{}
	// Interrupted means that what was under way has ended because of Interrupt.
	Interrupted struct{}
	// ReportLost means that the sink has not taken a Report, because what was under way has ended.
	ReportLost struct{}
)

// What others want. These events come at any time, from any goroutine.
type (
	// ResetWanted means that the feed is to continue from another mark, or with a snapshot if that is empty: the server has nothing after it.
	ResetWanted struct{ From vedette.Mark }
	// AnewWanted means that the feed is to be read anew, because what is stored differs from the cluster. A snapshot that runs is
	// completed first.
	AnewWanted struct{}
	// ReconnectWanted means that a watch is to continue from its mark with another request, if it began before a time; zero for any watch.
	ReconnectWanted struct{ Before time.Time }
	// Reached means that the API server has answered a request of the feed.
	Reached struct{}
)

func (Started) isEvent()         {}
func (ListAccepted) isEvent()    {}
func (Begun) isEvent()           {}
func (ListRestarted) isEvent()   {}
func (Listed) isEvent()          {}
func (Taken) isEvent()           {}
func (WatchOpened) isEvent()     {}
func (Changed) isEvent()         {}
func (Skipped) isEvent()         {}
func (Lasted) isEvent()          {}
func (WatchEnded) isEvent()      {}
func (Failed) isEvent()          {}
func (PauseOver) isEvent()       {}
func (Interrupted) isEvent()     {}
func (ReportLost) isEvent()      {}
func (ResetWanted) isEvent()     {}
func (AnewWanted) isEvent()      {}
func (ReconnectWanted) isEvent() {}
func (Reached) isEvent()         {}

// WatchEnd is how a watch has ended.
type WatchEnd string

// How a watch ends without an error.
const (
	EndedByServer WatchEnd = "ended"  // after the time that was asked for
	EndedEarly    WatchEnd = "early"  // the API server stops, or a proxy has lost it
	EndedSilent   WatchEnd = "silent" // nothing came, not even a bookmark
	EndedOverdue  WatchEnd = "late"   // the API server has not ended it in time
)

// Failure is what an error means for a feed.
type Failure struct {
	State    vedette.FeedState
	Message  string
	DropMark bool // the mark is useless: read a snapshot
	Delay    Delay
	MinDelay time.Duration // as the API server asks; 0 for any
	// CountsAgainstMark means that the mark may be the cause. It is dropped after maxFailedResumes of these.
	CountsAgainstMark bool
	Rediscover        bool // the kind may be gone
	ReloadCredentials bool
	IsUnreachable     bool // the API server or the way to it failed, so that other feeds fail too
	IsConnLost        bool // a connection was lost, which others may share
	IsStall           bool // other requests to this API server succeed, so the account's state must say it
}

// Delay is how soon a feed tries again.
type Delay string

// How soon a feed tries again.
const (
	NoDelay   Delay = ""
	Backoff   Delay = "backoff" // exponential
	LongDelay Delay = "long"    // minutes
)

// The failures that follow from what watches bring.
var (
	// emptyWatch is that of a watch which ended at once, without an event.
	emptyWatch = Failure{State: vedette.FeedFailing, Delay: Backoff, IsUnreachable: true, IsConnLost: true,
		Message: "the watch was closed as soon as it was opened, as some proxies do"}
	// silentWatch is that of a watch which was silent like the one before, although the API server should have ended it by itself.
	silentWatch = Failure{State: vedette.FeedFailing, Delay: Backoff, IsUnreachable: true, IsConnLost: true, IsStall: true,
		Message: "the watch receives nothing although the API server responds: check whether a proxy on the way buffers or drops responses"}
)
