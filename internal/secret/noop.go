package secret

import "context"

// Noop is the engine whose references contain the secret itself: encrypted:noop!SECRET. It is for
// tests of configurations.
type Noop struct{}

// Source implements Engine.
func (Noop) Source(r Reference) (Source, error) {
	fetch := func(context.Context) ([]byte, error) { return []byte(r.Rest), nil }
	return Source{Document: r.Rest, Fetch: fetch, Select: Whole}, nil
}
