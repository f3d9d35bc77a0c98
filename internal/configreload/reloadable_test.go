package configreload

import (
	"slices"
	"testing"

	"github.com/vedette-io/vedette/internal/configfile"
)

// TestOnlyReloadableSettingsTakeEffect checks which settings are in effect after a change.
func TestOnlyReloadableSettingsTakeEffect(t *testing.T) {
	reloadable := Reloadable{"level", "kinds."}
	settings := func(level, kind, port string) []configfile.KeyValue {
		return []configfile.KeyValue{{Key: "level", Value: level}, {Key: "kinds.all", Value: kind}, {Key: "port", Value: port}}
	}
	before, now := settings("info", "pod", "1"), settings("debug", "job", "2")
	if got := reloadable.Changed(now, before); !slices.Equal(got, []string{"level", "kinds.all"}) {
		t.Errorf("changed: got %q", got)
	}
	if got := reloadable.NeedRestart(now, before); !slices.Equal(got, []string{"port"}) {
		t.Errorf("need a restart: got %q", got)
	}
	if got := reloadable.InEffect(before, now); !slices.Equal(got, settings("debug", "job", "1")) {
		t.Errorf("in effect: got %v", got)
	}
}
