// Package lifecycle decides what becomes of one feed: when it lists, from which mark it watches, what it says about itself, and what
// follows from errors. A Feed is a state machine: events go in, effects come out. It does no I/O and reads no clock; package watch executes
// the effects.
//
// Guarantees:
//   - A snapshot ends only when one list has been passed on from its first object to its last one.
//   - A watch continues from the mark of the last End or change that the sink has taken, or from the last one that the server gave.
//   - A feed is live only while a watch is answered, or after one has ended as planned.
//   - Every error leads to another list or watch. Two tries that bring nothing have a pause between them.
package lifecycle

import (
	"cmp"
	"time"

	"github.com/vedette-io/vedette"
)

// Phase is what a feed is doing.
type Phase string

// The phases.
const (
	Starting Phase = "starting"
	Listing  Phase = "listing"  // a list is requested
	Syncing  Phase = "syncing"  // its objects are passed on
	Ending   Phase = "ending"   // all of them were; the sink has not taken the end of the snapshot
	Opening  Phase = "opening"  // a watch is requested
	Watching Phase = "watching" // it is answered
	Pausing  Phase = "pausing"
	Resting  Phase = "resting" // nothing will happen by itself
)

// maxFailedResumes is after how many failed resumes a mark is dropped.
const maxFailedResumes = 3

// Feed is the life of one feed. It is not safe for concurrent use.
type Feed struct {
	isSynthetic bool // its objects are known without the API server, and do not change

	phase         Phase
	mark          vedette.Mark
	listed        vedette.Mark // becomes the mark when End is taken
	snapshots     int          // how often it was read anew, or began to be
	failedResumes int          // from the same mark, because of malformed responses
	relists       int          // snapshots since a watch made progress
	isAnew        bool         // the next snapshot replaces what is stored, whatever versions it has
	hasBegun      bool         // the sink has taken the beginning of the snapshot
	madeProgress  bool         // since it began or continued
	began         time.Time    // when it last began or continued
	wasSilent     bool         // the last watch was
	isUnreachable bool         // the last request did not reach the API server, or failed in it
	isStalled     bool

	state   vedette.FeedState // as last reported; empty before
	message string
	warning string // about objects that were left out

	reset          *vedette.Mark // wanted, not yet applied
	isAnewWanted   bool
	isInterrupting bool // Interrupt has no answer yet
}

// New returns a feed that continues from a mark, or with a snapshot if it is empty.
func New(mark vedette.Mark) *Feed { return &Feed{phase: Starting, mark: mark} }

// NewSynthetic returns a feed whose objects are known without the API server, and do not change.
func NewSynthetic() *Feed { return &Feed{phase: Starting, isSynthetic: true} }

// Phase returns the phase.
func (f *Feed) Phase() Phase { return f.phase }

// Mark returns the mark up to which the sink has taken everything; empty if a snapshot is needed.
func (f *Feed) Mark() vedette.Mark { return f.mark }

// Snapshots returns how often the feed was read anew, or began to be.
func (f *Feed) Snapshots() int { return f.snapshots }

// IsFollowing reports whether the feed has reached its watch.
func (f *Feed) IsFollowing() bool { return f.phase == Opening || f.phase == Watching }

// IsUnreachable reports whether the last request did not reach the API server, or failed in it.
func (f *Feed) IsUnreachable() bool { return f.isUnreachable }

// Publishes reports whether the feed reports changes of its objects, sooner or later, as far as is known. A feed with a mark counts
// as reporting before the API server has responded.
func (f *Feed) Publishes() bool {
	isPending := f.state == vedette.FeedPending || f.state == ""
	return f.state != vedette.FeedDenied && (!isPending || f.mark != "")
}

// IsBeginningAnew reports whether a list is requested for a snapshot that replaces what is stored, and the sink has not taken its beginning
// yet. What others learn of the cluster meanwhile may be missing in the list, and must reach the server after the beginning, with which
// the server forgets what it knew.
func (f *Feed) IsBeginningAnew() bool {
	return f.isAnew && !f.hasBegun && (f.phase == Listing || f.phase == Syncing)
}

// Step handles an event, and returns what follows from it, in order. Events that do not concern the phase are ignored.
func (f *Feed) Step(e Event, now time.Time) []Effect {
	switch e := e.(type) {
	case ResetWanted:
		f.reset = &e.From
		return append([]Effect{ForgetEvidence{e.From}}, f.interrupt(f.phase != Starting)...) // what the server did not store is read again
	case AnewWanted:
		f.isAnewWanted = true
		return f.interrupt(f.IsFollowing())
	case ReconnectWanted:
		return f.interrupt(f.IsFollowing() && (e.Before.IsZero() || f.began.Before(e.Before)))
	case Reached:
		return f.reached()
	case Interrupted:
		f.isInterrupting = false
		return f.begin(now)
	case ReportLost:
		f.state, f.message = "", ""
		return nil
	}
	if f.isInterrupting {
		return nil
	}
	return f.proceed(e, now)
}

// interrupt ends what is under way, once, if a condition holds.
func (f *Feed) interrupt(condition bool) []Effect {
	if !condition || f.isInterrupting {
		return nil
	}
	f.isInterrupting = true
	return []Effect{Interrupt{}}
}

func (f *Feed) reached() []Effect {
	if !f.isUnreachable {
		return nil
	}
	f.isUnreachable = false
	return []Effect{RetryOthers{}, Disturb{All: true}}
}

// proceed handles an event of a feed that is not about to be interrupted.
func (f *Feed) proceed(e Event, now time.Time) []Effect {
	switch e := e.(type) {
	case Started:
		return append(f.report(vedette.FeedPending, ""), f.begin(now)...)
	case PauseOver:
		if f.phase == Pausing {
			return f.begin(now)
		}
	case ListAccepted, Begun, ListRestarted, Listed, Taken:
		return f.snapshot(e, now)
	case WatchOpened, Changed, Lasted, WatchEnded:
		if f.IsFollowing() {
			return f.follow(e, now)
		}
	case Skipped:
		f.warning = e.Message
		return append(f.report(f.state, f.warning), f.heard()...)
	case Failed:
		return f.failed(e.Failure, now)
	}
	return nil
}

// begin begins, or continues, with what others want.
func (f *Feed) begin(now time.Time) (effects []Effect) {
	if f.reset != nil {
		f.mark = *f.reset
		f.failedResumes = 0
		f.reset = nil
		f.snapshots++
		f.state, f.message = "", ""
		effects = append(effects, ForgetEvidence{f.mark}) // a snapshot may have ended after the request
		effects = append(effects, f.report(vedette.FeedPending, "")...)
	}
	f.isAnew, f.isAnewWanted = f.isAnew || f.isAnewWanted, false
	if f.isAnew { // also if the server names a mark before such a snapshot has ended
		f.mark = ""
	}
	f.madeProgress, f.began = false, now
	if f.isSynthetic || f.mark == "" {
		return append(effects, f.list()...)
	}
	return append(effects, f.watch()...)
}

func (f *Feed) list() []Effect {
	f.phase, f.warning = Listing, ""
	f.hasBegun = false
	f.snapshots++
	return []Effect{List{}}
}

func (f *Feed) watch() []Effect {
	f.phase = Opening
	return []Effect{Watch{Mark: f.mark, IsShort: f.wasSilent}}
}

// snapshot handles an event of a list. The snapshot begins when the API server has accepted the request, so that a feed that is
// denied repeatedly keeps its reported state.
func (f *Feed) snapshot(e Event, now time.Time) []Effect {
	switch e := e.(type) {
	case ListAccepted:
		if f.phase == Listing {
			f.phase = Syncing
			if f.isSynthetic {
				return []Effect{Begin{}}
			}
			return append(f.report(vedette.FeedSyncing, ""), Begin{Anew: f.isAnew})
		}
	case Begun:
		f.hasBegun = f.phase == Syncing
	case ListRestarted:
		if f.phase == Syncing {
			f.phase, f.warning = Listing, ""
			f.hasBegun = false
		}
	case Listed:
		if f.phase == Syncing {
			f.phase, f.listed = Ending, e.Mark
			return []Effect{End(e)}
		}
	case Taken:
		if f.phase == Ending {
			return f.taken(now)
		}
	}
	return nil
}

func (f *Feed) taken(now time.Time) []Effect {
	f.mark = f.listed
	f.isAnew = false
	f.madeProgress = true
	f.relists++
	switch {
	case f.isSynthetic:
		f.phase = Resting
		return append(f.report(vedette.FeedLive, ""), Rest{})
	case f.isAnewWanted:
		return append(f.credit(), f.begin(now)...)
	}
	return f.watch()
}

// follow handles an event of a watch.
func (f *Feed) follow(e Event, now time.Time) []Effect {
	switch e := e.(type) {
	case WatchOpened:
		f.phase = Watching
		if f.wasSilent && f.state == vedette.FeedFailing {
			return nil // it is live when it brings something
		}
		return f.report(vedette.FeedLive, "")
	case Changed:
		f.mark = e.Mark
		f.madeProgress = true
		f.failedResumes = 0
		f.relists = 0
		return f.heard()
	case Lasted:
		f.madeProgress, f.relists = true, 0
	case WatchEnded:
		return f.watchEnded(e.End, now)
	}
	return nil
}

// heard notes that the watch is not silent any more.
func (f *Feed) heard() []Effect {
	if !f.wasSilent || f.phase != Watching {
		return nil
	}
	f.wasSilent = false
	return f.report(vedette.FeedLive, "")
}

// watchEnded decides what follows a watch. After a silent one, that is a short watch at once. If that was silent too, the feed fails,
// because a feed without news must not be reported as live.
func (f *Feed) watchEnded(end WatchEnd, now time.Time) (effects []Effect) {
	switch {
	case end == EndedOverdue:
	case end == EndedSilent && f.wasSilent:
		f.madeProgress = false
		return f.failed(silentWatch, now)
	case end == EndedSilent:
		f.wasSilent = true
		effects = []Effect{Disturb{}}
	case !f.madeProgress:
		return f.failed(emptyWatch, now)
	default:
		if end == EndedEarly {
			effects = []Effect{Disturb{All: true}}
		}
		f.wasSilent = false
		effects = append(effects, f.report(vedette.FeedLive, "")...)
	}
	effects = append(effects, f.credit()...)
	return append(effects, f.begin(now)...)
}

// credit lets progress count, so that what fails next is not taken for a repetition. A feed that lists again and again makes none.
func (f *Feed) credit() []Effect {
	if !f.madeProgress {
		return nil
	}
	f.failedResumes = 0
	if f.relists > 1 {
		return nil
	}
	return []Effect{ResetBackoff{}}
}

// failed decides what follows an error. A feed that drops its mark twice without progress, or lists again after a list from which no
// watch could continue, backs off.
func (f *Feed) failed(e Failure, now time.Time) []Effect {
	effects := f.credit()
	dropsMark, delay := e.DropMark, e.Delay
	if e.CountsAgainstMark && f.mark != "" {
		f.failedResumes++
		dropsMark = f.failedResumes >= maxFailedResumes
	}
	if e.ReloadCredentials && f.state != vedette.FeedDenied {
		delay = Backoff // try once with the reloaded credentials
	}
	if dropsMark && (f.mark == "" && !f.madeProgress || f.relists > 1) {
		delay = Backoff
	}
	if dropsMark {
		f.mark, f.failedResumes = "", 0
	}
	f.isUnreachable, f.isStalled = e.IsUnreachable, f.isStalled || e.IsStall
	effects = append(effects, consequences(e)...)
	effects = append(effects, f.report(e.State, e.Message)...)
	if delay == NoDelay {
		return append(effects, f.begin(now)...)
	}
	f.phase = Pausing
	return append(effects, Pause{Delay: delay, MinDelay: e.MinDelay})
}

// consequences returns what an error means for others.
func consequences(e Failure) (effects []Effect) {
	for _, consequence := range []struct {
		holds  bool
		effect Effect
	}{
		{e.IsConnLost, NoteConnLost{}},
		{e.ReloadCredentials, ReloadCredentials{}},
		{e.Rediscover, Rediscover{}},
		{e.IsStall, ReportStall{e.Message}},
	} {
		if consequence.holds {
			effects = append(effects, consequence.effect)
		}
	}
	return effects
}

func (f *Feed) report(state vedette.FeedState, message string) (effects []Effect) {
	if state == vedette.FeedLive {
		message = cmp.Or(message, f.warning)
		if f.isStalled {
			f.isStalled = false
			effects = []Effect{ClearStall{}}
		}
	}
	if f.state == state && f.message == message {
		return effects
	}
	f.state, f.message = state, message
	return append(effects, Report{State: state, Message: message, Mark: f.mark})
}
