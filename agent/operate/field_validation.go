package operate

import (
	"context"

	"github.com/vedette-io/vedette"
)

// fieldValidationKey marks the context of an apply with the value of fieldValidation. It is
// looked at where requests are sent, so that no strategy can forget it.
type fieldValidationKey struct{}

// fieldValidationParams are the words of API servers.
var fieldValidationParams = map[vedette.FieldValidation]string{vedette.FieldValidationStrict: "Strict", vedette.FieldValidationWarn: "Warn", vedette.FieldValidationIgnore: "Ignore"}

func checkFieldValidation(v vedette.FieldValidation) error {
	if fieldValidationParams[v] == "" {
		return vedette.Errorf(vedette.Invalid, "there is no field validation %q: write strict, warn or ignore", v)
	}
	return nil
}

func withFieldValidation(ctx context.Context, v vedette.FieldValidation) context.Context {
	return context.WithValue(ctx, fieldValidationKey{}, fieldValidationParams[v])
}

// addFieldValidation is the same request with its fields validated, where the context asks
// for it. API servers that are older than that ignore it.
func (req request) addFieldValidation(ctx context.Context) request {
	value, ok := ctx.Value(fieldValidationKey{}).(string)
	if !ok || !req.isManifest {
		return req
	}
	return req.withQuery("fieldValidation", value)
}
