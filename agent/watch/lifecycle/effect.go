package lifecycle

import (
	"time"

	"github.com/vedette-io/vedette"
)

// Effect is something to do.
type Effect interface{ isEffect() }

// What takes time, and ends with an event. One of these is under way at a time.
type (
	// List reads all objects. Listed or Failed ends it.
	List struct{}
	// Watch reads what happens after the mark. WatchEnded or Failed ends it.
	Watch struct {
		Mark vedette.Mark
		// IsShort means that the last watch was silent. This one asks whether that was so because nothing has happened.
		IsShort bool
	}
	// Pause waits. PauseOver ends it.
	Pause struct {
		Delay    Delay
		MinDelay time.Duration
	}
	// Rest waits until it is interrupted.
	Rest struct{}
)

// What is done at once, in order.
type (
	// Begin tells the sink that a snapshot begins.
	Begin struct{ Anew bool } // what is stored has other content than its versions say
	// End tells the sink that the snapshot is complete. Taken follows.
	End struct{ Mark vedette.Mark }
	// Report tells the sink the state of the feed. Mark is that from which it continues.
	Report struct {
		State   vedette.FeedState
		Message string
		Mark    vedette.Mark
	}
	// ReportStall adds to the state of the account that the feed does not get on.
	ReportStall struct{ Message string }
	// ClearStall ends what ReportStall began.
	ClearStall struct{}
	// Interrupt ends what is under way. Interrupted follows.
	Interrupt struct{}
	// ForgetEvidence means that the feed is known to be complete up to no time any more, because it continues from a mark of the server.
	ForgetEvidence struct{ Mark vedette.Mark }
	// Disturb brings the verification of the feed forward, or those of all feeds.
	Disturb struct{ All bool }
	// RetryOthers lets other feeds try again, because the API server responds again.
	RetryOthers struct{}
	// NoteConnLost says that a connection was lost that other feeds may share.
	NoteConnLost struct{}
	// ReloadCredentials reads the credentials again.
	ReloadCredentials struct{}
	// Rediscover asks for a discovery.
	Rediscover struct{}
	// ResetBackoff makes the next Pause with Backoff short.
	ResetBackoff struct{}
)

func (List) isEffect()              {}
func (Watch) isEffect()             {}
func (Pause) isEffect()             {}
func (Rest) isEffect()              {}
func (Begin) isEffect()             {}
func (End) isEffect()               {}
func (Report) isEffect()            {}
func (ReportStall) isEffect()       {}
func (ClearStall) isEffect()        {}
func (Interrupt) isEffect()         {}
func (ForgetEvidence) isEffect()    {}
func (Disturb) isEffect()           {}
func (RetryOthers) isEffect()       {}
func (NoteConnLost) isEffect()      {}
func (ReloadCredentials) isEffect() {}
func (Rediscover) isEffect()        {}
func (ResetBackoff) isEffect()      {}
