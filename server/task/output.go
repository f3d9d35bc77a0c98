package task

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/textcheck"
	"github.com/vedette-io/vedette/server/manifest"
)

// Output is the output of one change of a cluster. In Clouddriver this is the output of
// kubectl. Here it is the agent's outcome in kubectl's form. It never contains the content of
// objects.
type Output struct {
	Manifest string `json:"manifest"` // "deployment web" for deployManifest, otherwise "deployment/web"
	Phase    string `json:"phase"`    // as in the history
	StdOut   string `json:"stdOut"`   // what was done, and the operation's id
	StdError string `json:"stdError"` // why it failed, or that this is unknown
}

// OutputPolicy selects the accounts whose outputs are kept.
type OutputPolicy int

// Values of OutputPolicy.
const (
	OutputNone  OutputPolicy = iota
	OutputDebug              // accounts with the property debug
	OutputAll
)

// Limits of the outputs of a task: the newest maxOutputs changes, and bytes per text.
const (
	maxOutputs     = 500
	maxOutputBytes = 2 << 10
)

func (t *opContext) recordOutput(c clusterChange, out vedette.Outcome) {
	policy := t.tasks.cfg.Output
	if policy == OutputNone || policy == OutputDebug && !t.op.debug {
		return
	}
	o := Output{Manifest: c.object, Phase: t.op.phase, StdOut: "operation " + string(out.ID) + "\n"}
	if out.State == vedette.Done {
		o.StdOut += textcheck.Truncate(describeSuccess(c, out), maxOutputBytes)
	} else {
		o.StdError = textcheck.Truncate(describeFailure(out), maxOutputBytes)
	}
	if !t.memory.tryTake(len(o.Manifest) + len(o.Phase) + len(o.StdOut) + len(o.StdError)) {
		t.report(t.op.phase, "The output of the change of "+o.Manifest+" is left out")
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.task.Outputs = append(t.task.Outputs, o)
	if excess := len(t.task.Outputs) - maxOutputs; excess > 0 {
		t.task.Outputs = slices.Delete(t.task.Outputs, 0, excess)
	}
}

// verbResults are kubectl's words for an object that a verb changed.
var verbResults = map[vedette.Verb]string{
	vedette.VerbApply: "applied", vedette.VerbPatch: "patched", vedette.VerbDelete: "deleted", vedette.VerbScale: "scaled",
	vedette.VerbRestart: "restarted", vedette.VerbPause: "paused", vedette.VerbResume: "resumed", vedette.VerbUndo: "rolled back",
}

// describeSuccess returns what was done, one object per line.
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

// describeFailure returns why an operation failed, for example "403 Forbidden: …". Messages of
// lost outcomes include that it may have taken effect.
func describeFailure(out vedette.Outcome) string {
	message := outcomeMessage(out)
	if out.Status == 0 || message == http.StatusText(out.Status) {
		return message
	}
	return strings.TrimSpace(fmt.Sprintf("%d %s", out.Status, http.StatusText(out.Status))) + ": " + message
}
