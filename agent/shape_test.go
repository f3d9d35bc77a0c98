package agent

import (
	"reflect"
	"testing"

	"github.com/vedette-io/vedette/agent/redact"
	"github.com/vedette-io/vedette/agent/watch"
)

// TestEveryRuleChangesProjectionHash checks that a change of any rule changes the hash, so
// that objects are sent again.
func TestEveryRuleChangesProjectionHash(t *testing.T) {
	hashes := map[string]string{shapeOf(redact.Config{}, watch.Selection{}): "no rule"}
	for i := range reflect.TypeFor[redact.Config]().NumField() {
		var c redact.Config
		name := reflect.TypeOf(c).Field(i).Name
		switch field := reflect.ValueOf(&c).Elem().Field(i); field.Kind() {
		case reflect.String:
			field.SetString("a*")
		default:
			field.Set(reflect.ValueOf([]string{"a*"}))
		}
		hash := shapeOf(c, watch.Selection{})
		if other, taken := hashes[hash]; taken {
			t.Errorf("%s: got the hash of %s, want another one", name, other)
		}
		hashes[hash] = name
	}
}
