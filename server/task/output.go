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

// OutputOf says of which accounts a task keeps outputs.
type OutputOf int

// The values of OutputOf.
const (
	OutputOfNone  OutputOf = iota
	OutputOfDebug          // those whose property debug is set
	OutputOfAll
)

// The bounds of what a task keeps: of so many changes, the newest, so many bytes
// of a text each.
const (
	mostOutputs   = 500
	longestOutput = 2 << 10
)

// keep keeps what became of a change.
func (t *turn) keep(a act, out vedette.Outcome) {
	of := t.tasks.cfg.Output
	if of == OutputOfNone || of == OutputOfDebug && !t.work.debug {
		return
	}
	o := Output{Manifest: a.object, Phase: t.work.phase, StdOut: "operation " + string(out.ID) + "\n"}
	if out.State == vedette.Done {
		o.StdOut += cut(achieved(a, out), longestOutput)
	} else {
		o.StdError = cut(complaint(out), longestOutput)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.task.Outputs = append(t.task.Outputs, o)
	if over := len(t.task.Outputs) - mostOutputs; over > 0 {
		t.task.Outputs = slices.Delete(t.task.Outputs, 0, over)
	}
}

// deeds are what kubectl says of an object that a verb changed.
var deeds = map[vedette.Verb]string{
	vedette.VerbApply: "applied", vedette.VerbPatch: "patched", vedette.VerbDelete: "deleted", vedette.VerbScale: "scaled",
	vedette.VerbRestart: "restarted", vedette.VerbPause: "paused", vedette.VerbResume: "resumed", vedette.VerbUndo: "rolled back",
}

// achieved tells what was done, an object in a line.
func achieved(a act, out vedette.Outcome) string {
	verb := a.args.Verb()
	lines := []string{}
	for _, key := range out.Keys {
		line := manifest.KindName(key.Kind) + "/" + key.Name + " " + deeds[verb]
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
		lines = append(lines, a.object+" "+deeds[verb])
	}
	if out.Message != "" {
		lines = append(lines, out.Message)
	}
	return strings.Join(lines, "\n")
}

// complaint tells why something was not done: "403 Forbidden: …". A lost outcome
// says itself that it may have been.
func complaint(out vedette.Outcome) string {
	said := words(out)
	if out.Status == 0 || said == http.StatusText(out.Status) {
		return said
	}
	return strings.TrimSpace(fmt.Sprintf("%d %s", out.Status, http.StatusText(out.Status))) + ": " + said
}

// cut keeps the beginning of a text that has more than n bytes.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
