package request

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
	shortBodyBytes    = 4 << 10  // what is read before memory is asked for
)

// Decoding is what becomes of a response.
type Decoding int

const (
	DecodedAsTree  Decoding = iota // maps and lists of values
	DecodedAsTypes                 // fields of Go types, which skip what they do not know
	NotDecoded
)

// The memory of decoded JSON, in bytes, for each brace and each comma or colon. A map with one entry takes
// 336 bytes, an element of a list 16, a number or the header of a text another 16.
var decodedCosts = map[Decoding]struct{ brace, separator int64 }{
	DecodedAsTree:  {brace: 336, separator: 32},
	DecodedAsTypes: {brace: 48, separator: 8},
}

// DecodedSize returns about how many bytes a JSON or YAML document becomes when it is decoded.
func DecodedSize(raw []byte, d Decoding) int64 {
	cost := decodedCosts[d]
	inText := false
	escaped := false
	if d == NotDecoded {
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

// Final returns an error because of which a request is not retried.
func Final(err error) error { return finalError{err} }

func isFinal(err error) bool {
	_, ok := errors.AsType[finalError](err)
	return ok
}

// UseMemory waits until the operation may use n more bytes. They are released when it ends, or by TemporaryMemory.
func (s *Sender) UseMemory(ctx context.Context, n int64) error {
	err := s.control.Memory.Grow(ctx, n)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fair.ErrTooLarge):
		return tooLargeError("the cluster's answer needs more memory than the agent has for one account")
	}
	return finalError{&StatusError{Status: http.StatusServiceUnavailable, Reason: "Busy",
		Message: fmt.Sprintf("the agent has no memory for the cluster's answer, because other operations use it: try again later (%v)", err)}}
}

// TemporaryMemory returns a function that releases what the operation has taken since. Whoever calls it keeps nothing
// that was read meanwhile, but for what was recorded of objects.
func (s *Sender) TemporaryMemory() (release func()) {
	used := func() int64 { return s.control.Memory.Units() - s.objects.bytes }
	before := used()
	return func() { s.control.Memory.Shrink(used() - before) }
}

// ReleaseMemory releases n bytes that UseMemory has taken.
func (s *Sender) ReleaseMemory(n int64) { s.control.Memory.Shrink(n) }

func tooLargeError(what string) error {
	return finalError{&StatusError{Status: http.StatusRequestEntityTooLarge, Reason: "TooLarge",
		Message: what + ": request less with a name, a namespace or a selector"}}
}

// readBody reads a response, and leaves no copy of it but the result, because the metadata of a Secret may hold
// its data.
func (s *Sender) readBody(ctx context.Context, src io.Reader, d Decoding) ([]byte, error) {
	all := make([]byte, 0, shortBodyBytes)
	for {
		n, err := src.Read(all[len(all):cap(all)])
		all = all[:len(all)+n]
		switch {
		case err == io.EOF:
			return all, s.UseMemory(ctx, DecodedSize(all, d))
		case err != nil:
		case len(all) > maxResponseBytes:
			err = tooLargeError(fmt.Sprintf("the cluster's answer has more than %d MiB", maxResponseBytes>>20))
		case len(all) == cap(all):
			if err = s.UseMemory(ctx, 2*int64(cap(all))); err == nil { // the body, and what is sent of it
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
