// Package requestid names a request of a caller, so that log lines of all programs that work for it
// can be found by one id.
package requestid

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"strings"

	"github.com/vedette-io/vedette/internal/logging"
)

// MaxBytes is the longest id. Callers' ids are UUIDs and ULIDs.
const MaxBytes = 128

// Header is the header of HTTP with the id of a request.
const Header = "X-Request-Id"

// key is the key of the id of a context.
type key struct{}

// New returns a random id.
func New() string { return rand.Text() }

// IsValid reports whether a caller's id may be in logs and messages: letters, digits and
// -_.:/+=@, because other characters could forge lines of a log.
func IsValid(id string) bool {
	return id != "" && len(id) <= MaxBytes && !strings.ContainsFunc(id, func(r rune) bool { return !isAllowed(r) })
}

func isAllowed(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.:/+=@", r)
}

// With returns a context with an id. Its log lines contain the id as "request". An id that is not
// valid is ignored.
func With(ctx context.Context, id string) context.Context {
	if !IsValid(id) {
		return ctx
	}
	return logging.WithAttrs(context.WithValue(ctx, key{}, id), slog.String("request", id))
}

// Of returns the id of a context; "" if it has none.
func Of(ctx context.Context) string {
	id, _ := ctx.Value(key{}).(string)
	return id
}

// SetHeader adds the id of a context to a request of our own, so that the logs of the service that
// answers it can be searched for the id.
func SetHeader(ctx context.Context, header http.Header) {
	if id := Of(ctx); id != "" {
		header.Set(Header, id)
	}
}

// Inherit returns a context with the id of another one, for work that outlives a request.
func Inherit(ctx, request context.Context) context.Context { return With(ctx, Of(request)) }
