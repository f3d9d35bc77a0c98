package configfile_test

import (
	"slices"
	"testing"

	"github.com/vedette-io/vedette/internal/configfile"
)

// TestEachChangedKeyIsNamedOnce checks that each key with another value is named once, in its order.
func TestEachChangedKeyIsNamedOnce(t *testing.T) {
	before := []configfile.KeyValue{{Key: "same", Value: "1"}, {Key: "changed", Value: "1"}, {Key: "gone", Value: "1"}}
	now := []configfile.KeyValue{{Key: "new", Value: "1"}, {Key: "changed", Value: "2"}, {Key: "same", Value: "1"}}
	if got, want := configfile.ChangedKeys(now, before), []string{"new", "changed", "gone"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
