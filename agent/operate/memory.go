package operate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/vedette-io/vedette/internal/fair"
)

// The limits of what an API server may answer, in bytes. What an operation reads also counts toward
// Control.Memory, as what it becomes.
const (
	maxResponseBytes  = 16 << 20 // one object, or a document; the limit of one object of a feed is the same
	maxErrorBodyBytes = 1 << 20  // an error. Admission webhooks may write long messages
)

// decoding is what becomes of a response.
type decoding int

const (
	decodedAsTree  decoding = iota // maps and lists of values
	decodedAsTypes                 // fields of Go types, which skip what they do not know
	notDecoded
)

// The memory of decoded JSON, in bytes, for each brace and each comma or colon. A map with one entry takes
// 336 bytes, an element of a list 16, a number or the header of a text another 16.
var decodedCosts = map[decoding]struct{ brace, separator int64 }{
	decodedAsTree:  {brace: 336, separator: 32},
	decodedAsTypes: {brace: 48, separator: 8},
}

// decodedSize returns about how many bytes a JSON or YAML document becomes when it is decoded.
func decodedSize(raw []byte, d decoding) int64 {
	cost, inText, escaped := decodedCosts[d], false, false
	if d == notDecoded {
		return 0
	}
	n := int64(len(raw))
	for _, c := range raw {
		switch {
		case escaped:
			escaped = false
		case inText && c == '\\':
			escaped = true
		case c == '"':
			inText = !inText
		case inText:
		case c == '{' || c == '[':
			n += cost.brace
		case c == ',' || c == ':' || c == '\n':
			n += cost.separator
		}
	}
	return n
}

// finalError is an error that a retry of the request does not solve.
type finalError struct{ error }

// Unwrap returns the error.
func (e finalError) Unwrap() error { return e.error }

func isFinal(err error) bool {
	var final finalError
	return errors.As(err, &final)
}

// useMemory waits until the operation may use n more bytes. They are released when it ends, or by temporaryMemory.
func (r *run) useMemory(ctx context.Context, n int64) error {
	err := r.control.Memory.Grow(ctx, n)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fair.ErrTooLarge):
		return tooLargeError("the cluster's answer needs more memory than the agent has for one account")
	}
	return finalError{&statusError{Status: http.StatusServiceUnavailable, Reason: "Busy",
		Message: fmt.Sprintf("the agent has no memory for the cluster's answer, because other operations use it: try again later (%v)", err)}}
}

// temporaryMemory returns a function that releases what the operation has taken since. Whoever calls it keeps nothing
// that was read meanwhile.
func (r *run) temporaryMemory() (release func()) {
	before := r.control.Memory.Units()
	return func() { r.control.Memory.Shrink(r.control.Memory.Units() - before) }
}

func tooLargeError(what string) error {
	return finalError{&statusError{Status: http.StatusRequestEntityTooLarge, Reason: "TooLarge",
		Message: what + ": request less with a name, a namespace or a selector"}}
}

// readBody reads a response, and leaves no copy of it but the result, because the metadata of a Secret may hold
// its data.
func (r *run) readBody(ctx context.Context, src io.Reader, d decoding) ([]byte, error) {
	all := make([]byte, 0, 4<<10)
	for {
		n, err := src.Read(all[len(all):cap(all)])
		all = all[:len(all)+n]
		switch {
		case err == io.EOF:
			return all, r.useMemory(ctx, decodedSize(all, d))
		case err != nil:
		case len(all) > maxResponseBytes:
			err = tooLargeError(fmt.Sprintf("the cluster's answer has more than %d MiB", maxResponseBytes>>20))
		case len(all) == cap(all):
			if err = r.useMemory(ctx, 2*int64(cap(all))); err == nil { // the body, and what is sent of it
				grown := append(make([]byte, 0, 2*cap(all)), all...)
				clear(all)
				all = grown
			}
		}
		if err != nil {
			clear(all)
			return nil, err
		}
	}
}
