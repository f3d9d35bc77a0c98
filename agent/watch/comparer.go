package watch

import (
	"context"
	"errors"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/watch/verify"
)

// ErrNotVerifiable is what a Comparer returns if the server of this connection cannot compare.
var ErrNotVerifiable = errors.New("the server does not verify feeds")

// Comparer asks the server what it stores of a feed. Its methods may be called concurrently, for one
// feed by one goroutine at a time.
type Comparer interface {
	// Compare is answered when everything is stored that Put has taken of the feed before.
	Compare(ctx context.Context, feed vedette.Feed, r verify.Request) (verify.Answer, error)
	// Report tells the server that a feed was verified, and what was found.
	Report(ctx context.Context, feed vedette.Feed, found VerifyReport) error
}

// VerifyReport is how a verification ended.
type VerifyReport struct {
	verify.Count
	Examples []string // names of some of the objects
	// Restored means that the whole feed was read anew, because its cluster had been restored.
	Restored bool
}
