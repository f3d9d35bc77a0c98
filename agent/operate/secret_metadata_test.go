package operate

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/request"
)

// TestWholeSecretsAreNotRead checks that what needs the metadata of a Secret accepts no whole one, which an API server sends that cannot send
// metadata alone. Of other objects it does accept them.
func TestWholeSecretsAreNotRead(t *testing.T) {
	for kind, acceptsWhole := range map[string]bool{"Secret": false, "ConfigMap": true} {
		var mu sync.Mutex
		var accepted []string
		o := newFakeOperator(t, Config{Requests: request.Config{InitialBackoff: time.Millisecond}}, func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/x") {
				mu.Lock()
				accepted = append(accepted, r.Header.Get("Accept"))
				mu.Unlock()
			}
			fmt.Fprintf(w, `{"kind":%q,"apiVersion":"v1","metadata":{"namespace":"n","name":"x","uid":"u"}}`, kind)
		})
		target := vedette.Target{Kind: kind, APIVersion: "v1", Namespace: "n", Name: "x"}
		for _, args := range []vedette.Args{vedette.DeleteArgs{Target: target}, vedette.EventsArgs{Target: target}} {
			mu.Lock()
			accepted = nil
			mu.Unlock()
			o.Execute(t.Context(), vedette.Operation{Args: args, Deadline: time.Now().Add(time.Second)})
			mu.Lock()
			for _, accept := range accepted {
				if got := strings.Contains(accept+",", "application/json,"); got != acceptsWhole {
					t.Errorf("%T of a %s accepts %q", args, kind, accept)
				}
			}
			if len(accepted) == 0 {
				t.Errorf("%T of a %s reads nothing", args, kind)
			}
			mu.Unlock()
		}
	}
}
