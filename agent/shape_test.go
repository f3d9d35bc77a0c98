package agent

import (
	"reflect"
	"testing"

	"github.com/vedette-io/vedette/agent/redact"
	"github.com/vedette-io/vedette/agent/watch"
)

// TestEachRuleIsPartOfTheShape holds that a change of any rule has objects told anew.
func TestEachRuleIsPartOfTheShape(t *testing.T) {
	shapes := map[string]string{shapeOf(redact.Config{}, watch.Selection{}): "no rule"}
	for i := range reflect.TypeFor[redact.Config]().NumField() {
		var c redact.Config
		name := reflect.TypeOf(c).Field(i).Name
		reflect.ValueOf(&c).Elem().Field(i).Set(reflect.ValueOf([]string{"a*"}))
		shape := shapeOf(c, watch.Selection{})
		if other, taken := shapes[shape]; taken {
			t.Errorf("%s has the shape of %s", name, other)
		}
		shapes[shape] = name
	}
}
