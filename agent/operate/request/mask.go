package request

import (
	"errors"
	"unicode/utf8"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/manifest"
	"github.com/vedette-io/vedette/internal/mask"
)

// MaskManifestValues masks the values of the Secret that a manifest is or embeds, in err, nil
// for none, and in the warnings so far. API servers quote the values that they reject, and
// admission webhooks write what they like.
func (s *Sender) MaskManifestValues(m manifest.Manifest, err error) error {
	return s.maskValues(func() mask.Values { return mask.ManifestValues(m.Encode()) }, err)
}

// MaskPatchValues masks the values of the Secret that a patch is for or embeds.
func (s *Sender) MaskPatchValues(p Path, patch []byte, err error) error {
	return s.maskValues(func() mask.Values { return mask.PatchValues(p.Kind.Name, patch) }, err)
}

// maskValues calls parseValues only if there is a text to mask, because that is expensive.
func (s *Sender) maskValues(parseValues func() mask.Values, err error) error {
	if err == nil && s.Warnings.isEmpty() {
		return nil
	}
	values := parseValues()
	s.Warnings.rewrite(func(texts []string) []string {
		warnings := make([]mask.Text, len(texts))
		for i, text := range texts {
			warnings[i] = mask.Text{Value: text, Truncated: utf8.RuneCountInString(text) == truncatedWarningRunes}
		}
		return values.MaskAll(warnings)
	})
	if err == nil {
		return nil
	}
	if statusErr := AsStatusError(err); statusErr != nil { // a webhook may write a value there too
		statusErr.Reason = values.Mask(statusErr.Reason)
	}
	if text := values.Mask(err.Error()); text != err.Error() {
		return withMessage(err, text)
	}
	return err
}

// truncatedWarningRunes is the length to which API servers cut a warning if the warnings of one
// response are too long together, in characters.
const truncatedWarningRunes = 256

// withMessage returns an error of the same kind with another message. The result does not wrap
// err, because its message must not be kept.
func withMessage(err error, text string) error {
	statusErr := AsStatusError(err)
	switch {
	case IsLost(err):
		return &LostError{Message: text}
	case statusErr != nil:
		return &StatusError{Status: statusErr.Status, Reason: statusErr.Reason, Message: text, absence: statusErr.absence}
	case vedette.KindOf(err) != "":
		return vedette.Errorf(vedette.KindOf(err), "%s", text)
	}
	return errors.New(text)
}
