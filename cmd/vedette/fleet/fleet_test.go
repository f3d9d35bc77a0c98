package fleet

import (
	"testing"
	"time"

	"github.com/vedette-io/vedette/internal/client"
)

// TestAgentWithoutHeartbeat checks that an agent that has just connected is not shown as silent for
// centuries.
func TestAgentWithoutHeartbeat(t *testing.T) {
	now := time.Now()
	layout := newAgentLayout(now)
	row := layout.row(client.Agent{ID: "a", Connected: now.Add(-3 * time.Second)})
	if heartbeat, age := row[6], row[7]; heartbeat != "<none>" || age != "3s" {
		t.Errorf("got last heartbeat %q, age %q, want <none> and 3s", heartbeat, age)
	}
}
