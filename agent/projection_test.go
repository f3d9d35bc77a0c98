package agent

import (
	"reflect"
	"testing"

	"github.com/vedette-io/vedette/agent/redact"
	"github.com/vedette-io/vedette/agent/watch"
)

// TestEveryRuleChangesProjectionHash holds that a change of any rule has objects told anew.
func TestEveryRuleChangesProjectionHash(t *testing.T) {
	hashes := map[string]string{projectionHash(redact.Config{}, watch.Selection{}): "no rule"}
	for i := range reflect.TypeFor[redact.Config]().NumField() {
		var c redact.Config
		name := reflect.TypeOf(c).Field(i).Name
		reflect.ValueOf(&c).Elem().Field(i).Set(reflect.ValueOf([]string{"a*"}))
		hash := projectionHash(c, watch.Selection{})
		if other, taken := hashes[hash]; taken {
			t.Errorf("%s has the shape of %s", name, other)
		}
		hashes[hash] = name
	}
}
