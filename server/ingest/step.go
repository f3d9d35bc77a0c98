package ingest

import (
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/commit"
)

// Step is one record of an agent's stream.
type Step struct {
	Type    StepType
	Account vedette.AccountName
	Term    vedette.Term
	Feed    vedette.Feed

	Object vedette.Object // of an Upsert; only the key of a Delete
	Mark   vedette.Mark   // that the feed has reached; empty if the step does not move it
	// IsRemembered means that the mark of a Bookmark need not be stored at once, see commit.FeedUpdate.
	IsRemembered bool
	Digests      []uint64 // of a Drop
	// NamedDigests says, in a Begin, that the agent computes vedette.Digest, and not
	// vedette.DigestWithoutName as older ones do.
	NamedDigests bool
	State        vedette.FeedState
	Message      string
	Time         time.Time // of a Heartbeat
	// Ages are those of the accounts that a Heartbeat lists, because its Time does not hold for them, or was not known to hold
	// before. Nil if the agent does not know ages.
	Ages map[vedette.AccountName]vedette.AccountAge
	Anew bool // of a Begin: what is stored has other content than its versions say
	// Verify is what a Verify asks, and Verified what a FeedVerified found.
	Verify   *Verify
	Verified *Verified

	Feeds         []commit.DeclaredFeed // of a Declare
	UnknownGroups []string

	Size int // size of the record in bytes before compression
}

// StepType is the type of a step.
type StepType int

// The types of a Step.
const (
	Declare StepType = iota
	Begin
	Upsert
	Delete
	Drop
	End
	Bookmark
	Status
	Heartbeat
	VerifyFeed   // asks what is stored
	FeedVerified // the feed equals its cluster
	Skip         // changes nothing, and is acknowledged like the others
)
