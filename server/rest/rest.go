// Package rest holds what the handlers of both REST APIs share: how they read bodies, write responses, and handle errors.
package rest

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"

	"github.com/cespare/xxhash/v2"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/etag"
	"github.com/vedette-io/vedette/internal/textcheck"
	"github.com/vedette-io/vedette/server/decodelimit"
)

// RetryAfter is the value of the header Retry-After, in seconds, if the server is unavailable.
const RetryAfter = "5"

// WriteJSON writes a value as JSON, with an ETag.
func WriteJSON(w http.ResponseWriter, r *http.Request, v any) error {
	body, err := Encode(v)
	if err != nil {
		return err
	}
	etag.Write(w, r, body, xxhash.Sum64(body))
	return nil
}

// Encode returns a value as JSON, with a line break at its end.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, fmt.Errorf("encode a response: %w", err)
	}
	return b.Bytes(), nil
}

// ReadBody reads a body of JSON, and reserves memory for what it becomes. Errors call it by its name, for example "body".
func ReadBody(w http.ResponseWriter, r *http.Request, name string, maxBytes int64) ([]byte, error) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBytes))
	if err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "read the %s: %w", name, err)
	}
	// encoding/json would silently replace invalid UTF-8, and the request would mean another object.
	if err := textcheck.UTF8(raw); err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "the %s must not contain %w", name, err)
	}
	return raw, decodelimit.Reserve(r.Context(), raw)
}

// CheckOrigin rejects cross-origin requests of browsers, because any web page could otherwise use a server on the
// machine of its visitor. Spinnaker's services are not browsers.
func CheckOrigin(r *http.Request) error {
	if err := http.NewCrossOriginProtection().Check(r); err != nil {
		return vedette.Errorf(vedette.Denied, "cross-origin requests are rejected: %w", err)
	}
	return nil
}

// StoppedMessage is the answer to a request that has ended before it was done. It is read if the server is stopping, and not if the
// client is gone. Without an answer, net/http would send an empty one with status 200, which clients take for success.
const StoppedMessage = "the request was not completed, because the server is stopping: try again"

// HasEnded reports whether a request failed because the server is stopping or its client is gone, which is not an error of the server.
func HasEnded(r *http.Request, err error) bool {
	return r.Context().Err() != nil && errors.Is(err, context.Canceled)
}

// LogInternal logs an error that clients must not see, and returns the ID by which it is found in the log.
func LogInternal(log *slog.Logger, r *http.Request, err error) (id string) {
	id = rand.Text()[:10]
	log.ErrorContext(r.Context(), "internal error", "id", id, "method", r.Method, "path", r.URL.Path, "error", err)
	return id
}
