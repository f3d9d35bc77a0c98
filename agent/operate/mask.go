package operate

import (
	"context"
	"errors"
	"unicode/utf8"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/mask"
)

// maskManifestValues takes the values of a Secret's manifest out of what was said of it, which is
// the text and the reason of an error, nil for none, and warnings: API servers quote
// what they can't take, and webhooks what they like. Of a manifest of another kind these
// are the values of the Secrets that it embeds.
func maskManifestValues(ctx context.Context, m manifest, err error) error {
	valuesOf := mask.EmbeddedSecretValues
	if m.isSecret() {
		valuesOf = mask.SecretValues
	}
	return maskValues(ctx, func() mask.Values { return valuesOf(m.encode()) }, err)
}

// isSecret reports whether a manifest is that of a Secret. One that was located says its
// kind as the cluster does, whatever its user wrote.
func (m manifest) isSecret() bool { return mask.IsSecretKind(nestedString(m.object, "kind")) }

// maskPatchValues does the same for a patch of an object at a place.
func maskPatchValues(ctx context.Context, p resourcePath, patch []byte, err error) error {
	valuesOf := mask.EmbeddedSecretValues
	if p.isSecret() {
		valuesOf = mask.SecretValues
	}
	return maskValues(ctx, func() mask.Values { return valuesOf(patch) }, err)
}

// maskValues does the same for values, which are asked for only where something was said.
func maskValues(ctx context.Context, parseValues func() mask.Values, err error) error {
	if err == nil && !hasWarnings(ctx) {
		return nil
	}
	values := parseValues()
	rewriteWarnings(ctx, func(texts []string) []string {
		warnings := make([]mask.Text, len(texts))
		for i, text := range texts {
			warnings[i] = mask.Text{Value: text, Truncated: utf8.RuneCountInString(text) == truncatedWarningRunes}
		}
		return values.MaskAll(warnings)
	})
	if err == nil {
		return nil
	}
	if r := asStatusError(err); r != nil { // of which only the webhook's or the API server's code should stand there
		r.Reason = values.Mask(r.Reason)
	}
	if text := values.Mask(err.Error()); text != err.Error() {
		return withMessage(err, text)
	}
	return err
}

// truncatedWarningRunes is how many characters API servers leave of a warning where one answer
// has too many.
const truncatedWarningRunes = 256

// withMessage is the same failure in other words. Nothing of the old ones is kept.
func withMessage(err error, text string) error {
	var lost *lostError
	var r *statusError
	switch {
	case errors.As(err, &lost):
		return &lostError{message: text}
	case errors.As(err, &r):
		return &statusError{Status: r.Status, Reason: r.Reason, Message: text}
	case vedette.KindOf(err) != "":
		return vedette.Errorf(vedette.KindOf(err), "%s", text)
	}
	return errors.New(text)
}
