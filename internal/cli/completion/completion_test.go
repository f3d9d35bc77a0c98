package completion

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"
)

// TestCompletionEndsAfterASecond checks that a question that is never answered, and that does not end when it should, ends after a second.
func TestCompletionEndsAfterASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, release := time.Now(), make(chan struct{})
		defer close(release)
		got := inTime(t.Context(), func(context.Context) []cobra.Completion {
			<-release
			return []string{"late"}
		})
		if took := time.Since(began); got != nil || took != time.Second {
			t.Errorf("got %q after %v, want nothing after a second", got, took)
		}
	})
}

func TestValuesAreReadFromTheUsage(t *testing.T) {
	for usage, want := range map[string][]string{
		"Output format: wide, json, yaml or name. Defaults to a table.": {"wide", "json", "yaml", "name"},
		"Output format: json or yaml.":                                  {"json", "yaml"},
		"Output: custom-columns=, wide or jsonpath=. More.":             {"custom-columns=", "wide", "jsonpath="},
		"Namespace of the objects. Defaults to default.":                nil,
		"Verb of the operations: apply, delete, scale, …":               nil,
	} {
		if got := valuesIn(usage); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", usage, got, want)
		}
	}
}

// TestOfferedNamesAreSafe checks that names that a shell would execute are not offered.
func TestOfferedNamesAreSafe(t *testing.T) {
	got := offered([]string{"web-0", "a$(reboot)", "b`x`", "c\x1b[2J", "d e", "e\tf", "f;g", "system:node", "größe"}, "pods/")
	if want := []string{"pods/web-0", "pods/system:node", "pods/größe"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
