package task

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/manifest"
)

// Output is what became of one change of a cluster. In Clouddriver it is what
// kubectl wrote. Here nobody runs kubectl: it is what the agent told, in kubectl's
// manner, and never an object's content.
type Output struct {
	Manifest string `json:"manifest"` // "deployment web"; "deployment/web" but for deployments
	Phase    string `json:"phase"`    // as in the history
	StdOut   string `json:"stdOut"`   // what was done, and the operation's ID
	StdError string `json:"stdError"` // why it was not done, or that it is not known
}

// OutputPolicy says of which accounts a task keeps outputs.
type OutputPolicy int

// The values of OutputPolicy.
const (
	OutputNone  OutputPolicy = iota
	OutputDebug              // those whose property debug is set
	OutputAll
)

// The bounds of what a task keeps: of so many changes, the newest, so many bytes
// of a text each.
const (
	maxOutputs     = 500
	maxOutputBytes = 2 << 10
)

// recordOutput keeps what became of a change.
func (t *opContext) recordOutput(c clusterChange, out vedette.Outcome) {
	policy := t.tasks.cfg.Output
	if policy == OutputNone || policy == OutputDebug && !t.op.debug {
		return
	}
	o := Output{Manifest: c.object, Phase: t.op.phase, StdOut: "operation " + string(out.ID) + "\n"}
	if out.State == vedette.Done {
		o.StdOut += truncate(describeSuccess(c, out), maxOutputBytes)
	} else {
		o.StdError = truncate(describeFailure(out), maxOutputBytes)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.task.Outputs = append(t.task.Outputs, o)
	if excess := len(t.task.Outputs) - maxOutputs; excess > 0 {
		t.task.Outputs = slices.Delete(t.task.Outputs, 0, excess)
	}
}

// verbResults are what kubectl says of an object that a verb changed.
var verbResults = map[vedette.Verb]string{
	vedette.VerbApply: "applied", vedette.VerbPatch: "patched", vedette.VerbDelete: "deleted", vedette.VerbScale: "scaled",
	vedette.VerbRestart: "restarted", vedette.VerbPause: "paused", vedette.VerbResume: "resumed", vedette.VerbUndo: "rolled back",
}

// describeSuccess tells what was done, an object in a line.
func describeSuccess(c clusterChange, out vedette.Outcome) string {
	verb := c.args.Verb()
	lines := []string{}
	for _, key := range out.Keys {
		line := manifest.KindName(key.Kind) + "/" + key.Name + " " + verbResults[verb]
		if out.CacheObject != nil && out.CacheObject.Key == key && out.CacheObject.ResourceVersion != "" {
			line += " (resourceVersion " + out.CacheObject.ResourceVersion + ")"
		}
		lines = append(lines, line)
	}
	switch {
	case out.Keys != nil:
	case verb == vedette.VerbDelete:
		lines = append(lines, "No resources found")
	default:
		lines = append(lines, c.object+" "+verbResults[verb])
	}
	if out.Message != "" {
		lines = append(lines, out.Message)
	}
	return strings.Join(lines, "\n")
}

// describeFailure tells why something was not done: "403 Forbidden: …". A lost outcome
// says itself that it may have been.
func describeFailure(out vedette.Outcome) string {
	message := outcomeMessage(out)
	if out.Status == 0 || message == http.StatusText(out.Status) {
		return message
	}
	return strings.TrimSpace(fmt.Sprintf("%d %s", out.Status, http.StatusText(out.Status))) + ": " + message
}

// truncate keeps the beginning of a text that has more than n bytes.
func truncate(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
