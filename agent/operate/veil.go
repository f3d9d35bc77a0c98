package operate

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/redact"
)

// veil takes the values of a Secret's manifest out of what was said of it, which is
// the text of an error, nil for none, and warnings: API servers quote what they can't
// take, and webhooks what they like. What is said of other kinds passes.
func veil(ctx context.Context, m manifest, err error) error {
	if !m.secret() || err == nil && !warned(ctx) {
		return err
	}
	return veiled(ctx, secretValues(m.object), err)
}

// secret reports whether a manifest is that of a Secret. One that was located says its
// kind as the cluster does, whatever its user wrote.
func (m manifest) secret() bool {
	kind := text(m.object, "kind")
	return strings.EqualFold(kind, "Secret") || strings.EqualFold(kind, "SecretList")
}

// veilPatch does the same for a patch of a Secret, whatever it changes.
func veilPatch(ctx context.Context, patch []byte, err error) error {
	var tree any
	if json.Unmarshal(patch, &tree) != nil { // a number in it is too big
		veilWarnings(ctx, func(string) string { return "the API server warned of something in the patch" })
		if err != nil {
			err = reworded(err, "the API server refused the patch")
		}
		return err
	}
	var values []string
	gather(tree, &values)
	return veiled(ctx, values, err)
}

// veiled takes values out of what was said, the longest first.
func veiled(ctx context.Context, values []string, err error) error {
	slices.SortFunc(values, func(a, b string) int { return len(b) - len(a) })
	veilWarnings(ctx, func(text string) string { return hide(hideCut(text, values), values) })
	if err == nil {
		return nil
	}
	if text := hide(err.Error(), values); text != err.Error() {
		return reworded(err, text)
	}
	return err
}

// veilMark stands where a value stood.
const veilMark = "***"

func hide(text string, values []string) string {
	for _, value := range values {
		text = strings.ReplaceAll(text, value, veilMark)
	}
	return text
}

// cutWarning is how many characters API servers leave of a warning where one answer
// has too many.
const cutWarning = 256

// hideCut takes the beginning of a value away from the end of a warning that an API
// server may have cut in the middle of it.
func hideCut(text string, values []string) string {
	if utf8.RuneCountInString(text) != cutWarning {
		return text
	}
	longest := 0
	for _, value := range values {
		for n := min(len(value), len(text)); n > longest && n >= leastHidden; n-- {
			if strings.HasSuffix(text, value[:n]) {
				longest = n
			}
		}
	}
	if longest == 0 {
		return text
	}
	return text[:len(text)-longest] + veilMark
}

// reworded is the same failure in other words. Nothing of the old ones is kept.
func reworded(err error, text string) error {
	var lost *lostError
	var r *refusal
	switch {
	case errors.As(err, &lost):
		return &lostError{errors.New(text)}
	case errors.As(err, &r):
		return &refusal{Status: r.Status, Reason: r.Reason, Message: text}
	case vedette.KindOf(err) != "":
		return vedette.Errorf(vedette.KindOf(err), "%s", text)
	}
	return errors.New(text)
}

// leastHidden is how long a value must be: what is shorter says nothing and would
// tear words apart.
const leastHidden = 3

// secretValues are the texts below data and stringData, and what annotations tell
// of them, in each form that could be quoted.
func secretValues(o object) []string {
	var values []string
	for _, member := range []string{"data", "stringData"} {
		gather(o[member], &values)
	}
	gather(dig(o, "metadata", "annotations", lastApplied), &values)
	gather(dig(o, "metadata", "annotations", redact.ContentAnnotation), &values)
	return values
}

func gather(v any, values *[]string) {
	switch v := v.(type) {
	case object:
		for _, member := range v {
			gather(member, values)
		}
	case []any:
		for _, element := range v {
			gather(element, values)
		}
	case string:
		forms(v, values)
		if plain, err := base64.StdEncoding.DecodeString(v); err == nil {
			forms(string(plain), values)
		}
	case int64:
		forms(strconv.FormatInt(v, 10), values)
	}
}

func forms(value string, values *[]string) {
	quoted := strconv.Quote(value)
	for _, form := range []string{value, quoted[1 : len(quoted)-1], base64.StdEncoding.EncodeToString([]byte(value))} {
		if len(form) >= leastHidden {
			*values = append(*values, form)
		}
	}
}
