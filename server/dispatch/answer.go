package dispatch

import (
	"context"
	"fmt"
	"net/http"
	"slices"

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
	return shortened(out)
}

// What a shortened outcome has at most: bytes of the names of objects, objects if these have more, bytes of other texts, and warnings.
const (
	maxShortNames    = 256 << 10
	maxShortKeys     = 20
	maxShortText     = 255
	maxShortWarnings = 20
)

// shortened returns an outcome without objects, and with short texts: an agent may send any.
func shortened(out vedette.Outcome) vedette.Outcome {
	left := "the server had no memory for the objects of this answer, so they are left out: read them again"
	if namesSize(&out) > maxShortNames {
		left = fmt.Sprintf("the server had no memory for this answer, so the objects are left out, and the names of most of the %d: read them again", len(out.Keys))
		out.Keys, out.UIDs = slices.Clone(out.Keys[:min(len(out.Keys), maxShortKeys)]), nil // without any, it would seem to have found none
		for i := range out.Keys {
			cleanKey(&out.Keys[i])
		}
	}
	out.Objects = nil
	out.Result = nil
	out.CacheObject, out.Awaited = nil, nil
	out.Absent = nil
	out.Changes = nil
	out.Reason, out.Message = vedette.CleanText(out.Reason, maxShortText), vedette.CleanText(out.Message, maxMessage)
	out.Warnings = slices.Clone(out.Warnings[:min(len(out.Warnings), maxShortWarnings)])
	for i := range out.Warnings {
		out.Warnings[i] = vedette.CleanText(out.Warnings[i], maxShortText)
	}
	out.Warnings = append(out.Warnings, left)
	return out
}

// namesSize returns the bytes of the names of an outcome's objects.
func namesSize(out *vedette.Outcome) (size int) {
	for _, k := range out.Keys {
		size += keyBytes(&k)
	}
	for _, uid := range out.UIDs {
		size += len(uid)
	}
	return size
}

func answerSize(out *vedette.Outcome) int64 {
	size := len(out.Result) + len(out.Reason) + len(out.Message) + namesSize(out)
	for _, o := range out.Objects {
		size += len(o)
	}
	for _, text := range out.Warnings {
		size += len(text)
	}
	for i := range out.Changes {
		size += len(out.Changes[i].Patch) + textBytes(&out.Changes[i])
	}
	if out.CacheObject != nil {
		size += len(out.CacheObject.Body)
	}
	if out.Awaited != nil {
		size += keyBytes(&out.Awaited.Key) + len(out.Awaited.Version)
	}
	if out.Absent != nil {
		size += keyBytes(&out.Absent.Key) + len(out.Absent.Version)
	}
	return int64(size)
}
