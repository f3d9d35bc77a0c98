package authorize

import (
	"context"
	"errors"

	"github.com/vedette-io/vedette"
)

// Probe asks Fiat once for the permissions of requests without a user.
func (f FiatConfig) Probe(ctx context.Context) error {
	_, err := newFiatClient(f.withDefaults()).fetchOnce(ctx, Caller{User: Anonymous})
	var final *finalError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &final):
		return vedette.Errorf(vedette.Invalid, "%w: check services.fiat.baseUrl, and that Fiat has loaded its users", final)
	}
	return vedette.Errorf(vedette.Unavailable, "%w: check services.fiat.baseUrl, and that Fiat runs", err)
}
