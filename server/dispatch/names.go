package dispatch

import (
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/vedette-io/vedette"
)

// checkNames rejects an operation with a name that no cluster can have. Neither the
// protocol nor the history can represent it.
func checkNames(op vedette.Operation) error {
	for _, name := range []string{string(op.ID), string(op.Account)} {
		if !isValidName(name) {
			return invalidName(name)
		}
	}
	if op.Args == nil {
		return nil
	}
	return checkStrings(reflect.ValueOf(op.Args))
}

// checkStrings checks all strings of the arguments. Manifests and patches are bytes,
// and the cluster validates them.
func checkStrings(v reflect.Value) error {
	switch v.Kind() {
	case reflect.String:
		if !isValidName(v.String()) {
			return invalidName(v.String())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if err := checkStrings(v.Field(i)); err != nil {
				return err
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.String {
			return nil
		}
		for i := range v.Len() {
			if err := checkStrings(v.Index(i)); err != nil {
				return err
			}
		}
	}
	return nil
}

func isValidName(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

func invalidName(s string) error {
	return vedette.Errorf(vedette.Invalid, "%s is not a name: it must be valid UTF-8 without NUL", fmt.Sprintf("%.100q", s))
}

// maxNote is the maximum length of User, Origin and the target in the history, in
// bytes.
const maxNote = 1000
