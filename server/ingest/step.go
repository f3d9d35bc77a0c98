package ingest

import (
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
)

// Step is one record of an agent's stream.
type Step struct {
	Type    StepType
	Account vedette.AccountName
	Term    vedette.Term
	Feed    vedette.Feed

	Object  vedette.Object // of an Upsert; only the key of a Delete
	Mark    vedette.Mark   // that the feed has reached; empty if the step does not move it
	Digests []uint64       // of a Drop
	State   vedette.FeedState
	Message string
	Time    time.Time // of a Heartbeat

	Feeds         []store.DeclaredFeed // of a Declare
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
	Skip // changes nothing, and is acknowledged like the others
)
