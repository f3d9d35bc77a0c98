package task

import (
	"crypto/rand"
	"errors"
	"net/http"

	"github.com/vedette-io/vedette"
)

// failure is why an operation failed, for histories and results.
type failure struct {
	class   string // Clouddriver's exception, without its package
	message string
	cause   string // the cluster's message, if any
}

func (f *failure) Error() string { return f.message }

// kubectlException is Clouddriver's exception for errors of a cluster.
const kubectlException = "KubectlException"

func illegalState(message string) error {
	return &failure{class: "IllegalStateException", message: message}
}

func illegalArgument(message string) error {
	return &failure{class: "IllegalArgumentException", message: message}
}

func (f *failure) exception(class string) Exception {
	e := Exception{Type: exceptionType, Operation: class, Message: f.message, Cause: f.cause, Details: []Detail{{f.message}}}
	if f.cause != "" {
		e.Details[0].Message = f.cause
	}
	return e
}

// toFailure converts an error to a failure without internal details.
func (r *taskRun) toFailure(op validatedOp, err error) *failure {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	switch vedette.KindOf(err) {
	case vedette.Invalid:
		return &failure{class: "IllegalArgumentException", message: err.Error()}
	case "":
		id := rand.Text()[:10]
		r.tasks.cfg.Log.ErrorContext(r.ctx, "internal error in an operation", "id", id, "task", r.id, "operation", op.name, "error", err)
		return &failure{class: "RuntimeException", message: "internal error; see the server's log for id " + id}
	default:
		return &failure{class: "IllegalStateException", message: err.Error()}
	}
}

// outcomeError returns the failure of an operation in a cluster, or nil if it is done. The
// message is prefix followed by the cluster's message. Messages of lost outcomes include that
// the operation may have taken effect.
func outcomeError(prefix string, out vedette.Outcome) error {
	if out.State == vedette.Done {
		return nil
	}
	message := outcomeMessage(out)
	return &failure{class: kubectlException, message: prefix + message, cause: message}
}

func outcomeMessage(out vedette.Outcome) string {
	switch {
	case out.Message != "":
		return out.Message
	case out.Reason != "":
		return out.Reason
	case http.StatusText(out.Status) != "":
		return http.StatusText(out.Status)
	}
	return "no reason given"
}
