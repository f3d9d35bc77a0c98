package operate

import (
	"context"

	"github.com/vedette-io/vedette"
)

// fieldsKey marks the context of an apply with the value of fieldValidation. It is
// looked at where requests are sent, so that no strategy can forget it.
type fieldsKey struct{}

// fieldValidations are the words of API servers.
var fieldValidations = map[vedette.FieldValidation]string{vedette.StrictFields: "Strict", vedette.WarnFields: "Warn", vedette.IgnoreFields: "Ignore"}

func checkFields(v vedette.FieldValidation) error {
	if fieldValidations[v] == "" {
		return vedette.Errorf(vedette.Invalid, "there is no field validation %q: write strict, warn or ignore", v)
	}
	return nil
}

func withFields(ctx context.Context, v vedette.FieldValidation) context.Context {
	return context.WithValue(ctx, fieldsKey{}, fieldValidations[v])
}

// validated is the same request with its fields validated, where the context asks
// for it. API servers that are older than that ignore it.
func (c call) validated(ctx context.Context) call {
	how, asked := ctx.Value(fieldsKey{}).(string)
	if !asked || !c.manifest {
		return c
	}
	return c.with("fieldValidation", how)
}
