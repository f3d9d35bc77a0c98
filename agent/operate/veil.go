package operate

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/redact"
)

// veil takes the values of a Secret's manifest out of an error's text: API
// servers quote what they can't take. Errors of other kinds pass.
func veil(m manifest, err error) error {
	if !m.secret() {
		return err
	}
	return veiled(secretValues(m.object), err)
}

// secret reports whether a manifest is that of a Secret. One that was located says its
// kind as the cluster does, whatever its user wrote.
func (m manifest) secret() bool {
	kind := text(m.object, "kind")
	return strings.EqualFold(kind, "Secret") || strings.EqualFold(kind, "SecretList")
}

// veilPatch does the same for a patch of a Secret, whatever it changes.
func veilPatch(patch []byte, err error) error {
	var tree any
	if json.Unmarshal(patch, &tree) != nil {
		return reworded(err, "the API server refused the patch")
	}
	var values []string
	gather(tree, &values)
	return veiled(values, err)
}

// veiled takes values out of an error's text, the longest first.
func veiled(values []string, err error) error {
	slices.SortFunc(values, func(a, b string) int { return len(b) - len(a) })
	text := err.Error()
	for _, value := range values {
		text = strings.ReplaceAll(text, value, "***")
	}
	if text == err.Error() {
		return err
	}
	return reworded(err, text)
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

// secretValues are the texts below data and stringData, and what annotations tell
// of them, in each form that could be quoted. What is shorter than three bytes
// says nothing and would tear words apart.
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
		if len(form) >= 3 {
			*values = append(*values, form)
		}
	}
}
