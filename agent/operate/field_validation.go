package operate

import "github.com/vedette-io/vedette"

// fieldValidationParams are the values of the API server's parameter fieldValidation.
var fieldValidationParams = map[vedette.FieldValidation]string{vedette.FieldValidationStrict: "Strict", vedette.FieldValidationWarn: "Warn",
	vedette.FieldValidationIgnore: "Ignore"}

func checkFieldValidation(v vedette.FieldValidation) error {
	if fieldValidationParams[v] == "" {
		return vedette.Errorf(vedette.Invalid, "there is no field validation %q: write strict, warn or ignore", v)
	}
	return nil
}
