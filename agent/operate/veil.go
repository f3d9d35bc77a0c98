package operate

import (
	"context"
	"errors"
	"unicode/utf8"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/mask"
)

// veil takes the values of a Secret's manifest out of what was said of it, which is
// the text and the reason of an error, nil for none, and warnings: API servers quote
// what they can't take, and webhooks what they like. Of a manifest of another kind these
// are the values of the Secrets that it embeds.
func veil(ctx context.Context, m manifest, err error) error {
	of := mask.In
	if m.secret() {
		of = mask.Of
	}
	return veilOf(ctx, func() mask.Values { return of(m.raw()) }, err)
}

// secret reports whether a manifest is that of a Secret. One that was located says its
// kind as the cluster does, whatever its user wrote.
func (m manifest) secret() bool { return mask.Secret(text(m.object, "kind")) }

// veilPatch does the same for a patch of an object at a place.
func veilPatch(ctx context.Context, p place, patch []byte, err error) error {
	of := mask.In
	if p.secret() {
		of = mask.Of
	}
	return veilOf(ctx, func() mask.Values { return of(patch) }, err)
}

// veilOf does the same for values, which are asked for only where something was said.
func veilOf(ctx context.Context, of func() mask.Values, err error) error {
	if err == nil && !warned(ctx) {
		return nil
	}
	values := of()
	veilWarnings(ctx, func(texts []string) []string {
		said := make([]mask.Text, len(texts))
		for i, text := range texts {
			said[i] = mask.Text{Said: text, Cut: utf8.RuneCountInString(text) == cutWarning}
		}
		return values.HideAll(said)
	})
	if err == nil {
		return nil
	}
	if r := refusalOf(err); r != nil { // of which only the webhook's or the API server's code should stand there
		r.Reason = values.Hide(r.Reason)
	}
	if text := values.Hide(err.Error()); text != err.Error() {
		return reworded(err, text)
	}
	return err
}

// cutWarning is how many characters API servers leave of a warning where one answer
// has too many.
const cutWarning = 256

// reworded is the same failure in other words. Nothing of the old ones is kept.
func reworded(err error, text string) error {
	var lost *lostError
	var r *refusal
	switch {
	case errors.As(err, &lost):
		return &lostError{told: text}
	case errors.As(err, &r):
		return &refusal{Status: r.Status, Reason: r.Reason, Message: text}
	case vedette.KindOf(err) != "":
		return vedette.Errorf(vedette.KindOf(err), "%s", text)
	}
	return errors.New(text)
}
