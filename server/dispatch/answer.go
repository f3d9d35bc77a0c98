package dispatch

import (
	"context"
	"net/http"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/readlimit"
)

// freeAnswerBytes is what an answer may have without being counted: most are one object.
const freeAnswerBytes = 32 << 10

// held counts the memory of an answer until the caller's response is written. The agent's share paid for
// it while it arrived. An answer that finds no room is dropped: a list can be read again, and of a change
// the caller learns what became of it.
func held(ctx context.Context, op vedette.Operation, out vedette.Outcome) vedette.Outcome {
	size := answerSize(&out)
	if size <= freeAnswerBytes || readlimit.Hold(ctx, size) {
		return out
	}
	if op.Reads() {
		busy := failedOutcome(http.StatusServiceUnavailable, "Busy", "the server has no memory for this answer, because this caller or others have not read theirs yet: "+
			"try again when some have ended, or request less with a name, a namespace or a selector")
		busy.ID = out.ID
		return busy
	}
	out.Objects, out.Result = nil, nil
	out.Warnings = append(out.Warnings[:len(out.Warnings):len(out.Warnings)], "the server had no memory for the objects of this answer, so they are left out: read them again")
	return out
}

func answerSize(out *vedette.Outcome) int64 {
	size := len(out.Result)
	for _, o := range out.Objects {
		size += len(o)
	}
	return int64(size)
}
