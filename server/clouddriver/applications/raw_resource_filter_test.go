package applications

import (
	"encoding/json"
	"testing"

	"github.com/vedette-io/vedette"
)

func TestRawResourceFilter(t *testing.T) {
	deployment, crontab := vedette.Kind{Group: "apps", Name: "Deployment"}, vedette.Kind{Group: "stable.example.com", Name: "CronTab"}
	for _, tt := range []struct {
		name       string
		properties vedette.Properties
		deployment bool
		crontab    bool
	}{
		{"without settings all kinds show", vedette.Properties{}, true, true},
		{"kinds", vedette.Properties{Kinds: []string{"deployment"}}, true, false},
		{"kinds with a group", vedette.Properties{Kinds: []string{"Deployment.apps", "crontab.stable.example.com"}}, true, true},
		{"kinds by their aliases", vedette.Properties{Kinds: []string{"deploy"}}, true, false},
		{"omitted kinds", vedette.Properties{OmitKinds: []string{"CronTab.stable.example.com"}}, true, false},
		{"a kind of the same name in another group", vedette.Properties{OmitKinds: []string{"CronTab.other.example.com"}}, true, true},
		{"an expression that omits", vedette.Properties{RawResourceExpressions: json.RawMessage(`{"omitKindExpressions":["[a-z]+"]}`)}, false, true},
		{"an expression matches the whole name", vedette.Properties{RawResourceExpressions: json.RawMessage(`{"omitKindExpressions":["deploy","Cron|X"]}`)}, true, true},
		{"an expression that includes comes before one that omits", vedette.Properties{
			RawResourceExpressions: json.RawMessage(`{"kindExpressions":["deploy.*"],"omitKindExpressions":[".*"]}`)}, true, false},
		{"what no expression matches shows", vedette.Properties{RawResourceExpressions: json.RawMessage(`{"kindExpressions":["deploy.*"]}`)}, true, true},
		{"expressions cannot show an omitted kind", vedette.Properties{OmitKinds: []string{"deployment"},
			RawResourceExpressions: json.RawMessage(`{"kindExpressions":[".*"]}`)}, false, true},
		{"an invalid expression matches nothing", vedette.Properties{RawResourceExpressions: json.RawMessage(`{"omitKindExpressions":["(", "deployment"]}`)}, false, true},
		{"settings that cannot be read", vedette.Properties{RawResourceExpressions: json.RawMessage(`[1]`)}, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newRawResourceFilter("", tt.properties)
			if got := f.shows(deployment); got != tt.deployment {
				t.Errorf("deployment: got %v, want %v", got, tt.deployment)
			}
			if got := f.shows(crontab); got != tt.crontab {
				t.Errorf("crontab: got %v, want %v", got, tt.crontab)
			}
		})
	}
}

func TestRawResourceFiltersFollowTheAccount(t *testing.T) {
	var filters rawResourceFilters
	before := filters.of("prod", vedette.Properties{})
	if filters.of("prod", vedette.Properties{}) != before {
		t.Error("an unchanged account has a new filter")
	}
	after := filters.of("prod", vedette.Properties{OmitKinds: []string{"pod"}})
	if after.shows(vedette.Kind{Name: "Pod"}) {
		t.Error("the filter does not follow the account's settings")
	}
}
