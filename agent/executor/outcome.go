package executor

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/fair"
)

// entryOverhead is the approximate memory of an operation or an outcome besides its texts, in bytes.
const entryOverhead = 256

func outcomeSize(out vedette.Outcome) int {
	n := entryOverhead + len(out.Message) + len(out.Result)
	for _, o := range out.Objects {
		n += len(o)
	}
	for _, text := range out.Warnings {
		n += len(text)
	}
	for _, c := range out.Changes {
		n += len(c.Key.Namespace) + len(c.Key.Name) + len(c.Patch) + len(c.Note) + entryOverhead
	}
	for i, key := range out.Keys {
		n += len(key.Namespace) + len(key.Name) + entryOverhead/2
		if i < len(out.UIDs) {
			n += len(out.UIDs[i])
		}
	}
	return n
}

// operationSize returns the approximate memory of an operation that waits, in bytes.
func operationSize(op vedette.Operation) int64 {
	n := entryOverhead
	switch a := op.Args.(type) {
	case vedette.ApplyArgs:
		n += len(a.Manifest)
	case vedette.PatchArgs:
		n += len(a.Patch)
	case vedette.VersionArgs:
		n += len(a.Manifest)
	case vedette.PruneArgs:
		for _, text := range a.Keep {
			n += len(text) + 16
		}
		for _, text := range a.Namespaces {
			n += len(text) + 16
		}
	}
	return int64(n)
}

func failedOutcome(op vedette.Operation, status int, reason, message string) vedette.Outcome {
	return vedette.Outcome{ID: op.ID, State: vedette.Failed, Status: status, Reason: reason, Message: message}
}

func lateOutcome(op vedette.Operation, why error) vedette.Outcome {
	return failedOutcome(op, http.StatusGatewayTimeout, "Timeout", fmt.Sprintf("%v. It had no effect: nothing was sent to the cluster", why))
}

func busyOutcome(op vedette.Operation, err error, cfg Config) vedette.Outcome {
	message := "no worker of the agent was free before the deadline; nothing was done. The agent executes at most " +
		strconv.Itoa(max(1, cfg.MaxWorkers/8)) + " operations of one account at once, and " + strconv.Itoa(cfg.MaxWorkers) + " of all"
	if errors.Is(err, fair.ErrQueueFull) {
		message = strconv.Itoa(cfg.MaxQueued) + " operations of the account wait for a worker of the agent already; nothing was done. Try again later"
	}
	return failedOutcome(op, http.StatusServiceUnavailable, "Busy", message)
}

func noMemoryOutcome(op vedette.Operation) vedette.Outcome {
	return failedOutcome(op, http.StatusServiceUnavailable, "Busy",
		"the agent has no memory for another operation of the account; nothing was done. Try again later")
}

func tooManyStreamsOutcome(op vedette.Operation, streams int) vedette.Outcome {
	return failedOutcome(op, http.StatusServiceUnavailable, "Busy",
		"the agent already sends "+strconv.Itoa(streams)+" logs of the account, or as many as it can of all accounts; stop following one of them")
}
