package operate

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/manifest"
	"github.com/vedette-io/vedette/agent/operate/request"
)

// TestErrorsAreMasked checks that message and reason of an error contain no value, and that it stays an
// error of the same kind.
func TestErrorsAreMasked(t *testing.T) {
	m, err := manifest.Parse([]byte(`{"apiVersion":"v1","kind":"secrets","metadata":{"name":"s"},"stringData":{"password":"hunter2"}}`))
	if err != nil {
		t.Fatal(err)
	}
	denied := &request.StatusError{Status: 403, Reason: "hunter2", Message: `admission webhook "w" denied the request: it is hunter2`}
	for _, tt := range []struct {
		err   error
		state vedette.OutcomeState
		want  string
	}{
		{denied, vedette.Failed, `403 *** admission webhook "w" denied the request: it is ***`},
		{fmt.Errorf("apply: %w", &request.StatusError{Status: 422, Reason: "aHVudGVyMg==", Message: "no"}), vedette.Failed, "422 *** apply: no"},
		{&request.LostError{Err: errors.New("hunter2 broke off")}, vedette.Lost, "504 Lost the request was sent, but the response did not arrive, so it may have taken effect: *** broke off"},
		{vedette.Errorf(vedette.NotFound, "no hunter2"), vedette.Failed, "404 NotFound no ***"},
		{errors.New(`bad: "hunter2"`), vedette.Failed, `500 InternalError bad: "***"`},
		{errors.New("nothing"), vedette.Failed, "500 InternalError nothing"},
	} {
		out := errorOutcome(testRun().MaskManifestValues(m, tt.err))
		if got := fmt.Sprintln(out.Status, out.Reason, out.Message); strings.TrimSpace(got) != tt.want || out.State != tt.state {
			t.Errorf("got %s: %swant %s: %s", out.State, got, tt.state, tt.want)
		}
	}
}
