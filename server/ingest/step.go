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

	Object  vedette.Object // of an Upsert; its key of a Delete
	Mark    vedette.Mark   // that the feed has reached; empty where the step moves none
	Digests []uint64       // of a Drop
	State   vedette.FeedState
	Message string
	Time    time.Time // of a Heartbeat

	Feeds         []store.DeclaredFeed // of a Declare
	UnknownGroups []string

	Size int // bytes that the record took before compression
}

// StepType says what a step is.
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
	Skip // changes nothing, and is acknowledged like any other
)
