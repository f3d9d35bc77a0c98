package read

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// TestEventsOfBothGroupsHaveColumns checks the columns of Events of both API groups.
func TestEventsOfBothGroupsHaveColumns(t *testing.T) {
	now := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	for _, tt := range []struct{ name, kind, manifest, want string }{
		{"core/v1", "Event", `{"metadata":{"name":"a.1","namespace":"shop"},"type":"Warning","reason":"BackOff","message":"restarting\n",
			"involvedObject":{"kind":"Pod","name":"a"},"lastTimestamp":"2026-01-01T23:55:00Z","eventTime":null}`,
			"dev shop 5m Warning BackOff pod/a restarting"},
		{"events.k8s.io/v1", "Event.events.k8s.io", `{"metadata":{"name":"a.1","namespace":"shop"},"type":"Normal","reason":"Scheduled","note":"assigned",
			"regarding":{"kind":"Pod","name":"a"},"eventTime":"2026-01-01T23:00:00.123456Z"}`,
			"dev shop 59m Normal Scheduled pod/a assigned"},
		{"events.k8s.io/v1 of an old client", "Event.events.k8s.io", `{"metadata":{"name":"a.1","namespace":"shop"},"type":"Normal","reason":"Started","note":"started",
			"regarding":{"kind":"Pod","name":"a"},"eventTime":null,"deprecatedLastTimestamp":"2026-01-01T23:55:00Z"}`,
			"dev shop 5m Normal Started pod/a started"},
		{"another kind", "Secret", `{"metadata":{"name":"key","namespace":"shop","creationTimestamp":"2026-01-01T00:00:00Z"}}`, "dev shop key 24h"},
	} {
		o := liveObject{account: "dev", kind: tt.kind}
		if err := json.Unmarshal([]byte(tt.manifest), &o); err != nil {
			t.Fatal(err)
		}
		lines := (&getter{}).liveTable(tt.kind, []liveObject{o}, now).Text()
		if got := strings.Join(strings.Fields(lines[1]), " "); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}
