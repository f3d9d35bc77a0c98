package credentials

import (
	"context"
	"time"

	"github.com/vedette-io/vedette/agent/cloud"
)

// FromCloud returns what gets the tokens of a cloud, for a Cache.
func FromCloud(source *cloud.Source) func(ctx context.Context) (*Credentials, error) {
	return func(ctx context.Context) (*Credentials, error) {
		token, err := source.Token(ctx)
		if err != nil {
			return nil, err
		}
		return &Credentials{Token: token.Value, expires: token.Expires, replace: replaceAt(token.Expires, time.Now())}, nil
	}
}

// maxAhead is how long before their end tokens of a long life are replaced, so that an outage of a token service for so long harms
// nobody. The metadata server of GKE has another token four minutes before the end of one.
const maxAhead = 3 * time.Minute

// replaceAt returns when a new token should be got: a quarter of the lifetime is left.
func replaceAt(expires, now time.Time) time.Time {
	if !expires.After(now) { // also if it is unknown
		return time.Time{}
	}
	return expires.Add(-min(maxAhead, expires.Sub(now)/4))
}
