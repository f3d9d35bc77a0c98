package lifecycle

import (
	"fmt"
	"net/http"
	"time"

	"github.com/vedette-io/vedette"
)

// Failed returns the outcome of an operation that has done nothing.
func Failed(status int, reason, message string) vedette.Outcome {
	return vedette.Outcome{State: vedette.Failed, Status: status, Reason: reason, Message: message}
}

// interpret returns the outcome for the caller. A failure after two processes had the
// operation is lost, because the failure of one says nothing about what the other did.
func (o *Operation) interpret(out vedette.Outcome) vedette.Outcome {
	if o.op.Reads() && out.State != vedette.Done {
		out.State, out.Objects = vedette.Failed, nil // nothing can have taken effect, and a part of a list is worth nothing
	}
	if out.State != vedette.Failed || o.previous == nil || !o.op.Changes() {
		return o.explainUnsupported(out)
	}
	return vedette.Outcome{State: vedette.Lost, Status: http.StatusGatewayTimeout, Reason: "Lost", Warnings: out.Warnings,
		Message: fmt.Sprintf("it is unknown whether this took effect: it was sent to agent %s at %s, which disconnected before it answered, and then to agent %s, where it failed: %s. "+
			"Look at the object before you try again", o.previous.Agent.ID, formatTime(o.previous.SentAt), o.last.Agent.ID, out.Message)}
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// explainUnsupported adds to an agent's rejection which feature the agent does not
// know.
func (o *Operation) explainUnsupported(out vedette.Outcome) vedette.Outcome {
	if out.State != vedette.Failed || out.Reason != vedette.ReasonUnknownToAgent || o.last == nil {
		return out
	}
	feature := fmt.Sprintf("the verb %s in this form", o.op.Args.Verb())
	if o.op.DryRun {
		feature = "dry runs"
	}
	out.Status, out.Reason = http.StatusNotImplemented, "NotImplemented"
	out.Message = fmt.Sprintf("agent %s is too old for %s and did nothing: upgrade it", o.last.Agent.ID, feature)
	return out
}

// unserved is the outcome if no agent took the operation.
func (o *Operation) unserved(obstacle Obstacle, now time.Time) vedette.Outcome {
	message := fmt.Sprintf("no agent serves account %s: none has connected within %v, and nothing was done. `vedette agents` shows the connected agents, "+
		"and why an agent does not serve an account", o.op.Account, now.Sub(o.accepted).Round(time.Second))
	mute := obstacle.Mute
	switch {
	case mute.ID != "":
		message = fmt.Sprintf("agent %s (version %s), which serves account %s, does not accept operations: upgrade it", mute.ID, mute.Version,
			o.op.Account)
	case obstacle.Server != "":
		message = fmt.Sprintf("the agent of account %s could not be reached within %v, and nothing was done: %s. Try again", o.op.Account,
			now.Sub(o.accepted).Round(time.Second), obstacle.Server)
	}
	return Failed(http.StatusServiceUnavailable, "ServiceUnavailable", message)
}

// tooLate is the outcome if the deadline has passed when an agent could have the operation.
func (o *Operation) tooLate(now time.Time) vedette.Outcome {
	if o.last != nil {
		return o.timedOut(Obstacle{}, now)
	}
	return Failed(http.StatusGatewayTimeout, "Timeout", "the deadline passed before the operation was sent, because this server stood still. Nothing was done: try again")
}

// abandoned is the outcome if the process that had the operation is gone, and
// the operation must not be sent to another.
func (o *Operation) abandoned(current Agent) vedette.Outcome {
	explanation := "restarted before it answered and cannot know"
	if current.ID != o.last.Agent.ID {
		explanation = fmt.Sprintf("disconnected, and agent %s, which serves the account now, cannot know", current.ID)
	}
	return o.lost(explanation + "; sending it again could execute it twice")
}

// anotherCluster ends an operation whose account has another cluster now.
func (o *Operation) anotherCluster(e Served) []Effect {
	if o.last != nil && o.op.Changes() {
		return o.end(o.lost("disconnected before it answered; the account belongs to another cluster now"))
	}
	out := Failed(http.StatusConflict, vedette.ReasonAnotherCluster, "account "+string(o.op.Account)+
		" belongs to another cluster than when the operation was accepted. Nothing was done: look at the account before you try again")
	return append([]Effect{WarnAnotherCluster{e.Agent.ID, o.op.Cluster, e.Cluster}}, o.end(out)...)
}

// timedOut is the outcome after the deadline, or if the caller has left or the
// server stops.
func (o *Operation) timedOut(obstacle Obstacle, now time.Time) vedette.Outcome {
	isEarly := now.Before(o.op.Deadline)
	switch {
	case isEarly && o.op.Reads():
		return Failed(http.StatusGatewayTimeout, "Canceled", "the caller has left")
	case isEarly && (o.last == nil || o.op.DryRun):
		return Failed(http.StatusServiceUnavailable, "ServiceUnavailable", "the server is stopping; nothing was done")
	case isEarly:
		return o.lost("has not answered, and the server is stopping")
	case o.last == nil:
		return o.unserved(obstacle, now)
	case !o.op.Changes():
		return Failed(http.StatusGatewayTimeout, "Timeout", fmt.Sprintf("agent %s did not answer by the deadline, %v after it was asked",
			o.last.Agent.ID, o.op.Deadline.Sub(o.last.SentAt).Round(time.Second)))
	}
	return o.lost("did not answer by the deadline")
}

// lost is the outcome of an operation that may have taken effect. It says what
// is known.
func (o *Operation) lost(explanation string) vedette.Outcome {
	return vedette.Outcome{State: vedette.Lost, Status: http.StatusGatewayTimeout, Reason: "Lost",
		Message: fmt.Sprintf("it is unknown whether this took effect: it was sent to agent %s at %s, which %s. Look at the object before you try again",
			o.last.Agent.ID, formatTime(o.last.SentAt), explanation)}
}
