package output

import (
	"fmt"
	"io"
)

// MaxNotices is how many notices about accounts a command prints. A fleet that has lost its network would cause hundreds,
// and hide what the command shows.
const MaxNotices = 10

// Notices prints what users should know about accounts: each text once in a command, and not too many. It is for what is no
// failure. It must not be used concurrently.
type Notices struct {
	Out  io.Writer
	seen map[string]bool
	more int
}

// Add prints a notice, unless one with the same key was added, or too many were printed. It reports whether it was new.
func (n *Notices) Add(key, text string) bool {
	if n.seen[key] {
		return false
	}
	if n.seen == nil {
		n.seen = map[string]bool{}
	}
	n.seen[key] = true
	if len(n.seen) > MaxNotices {
		n.more++
		return true
	}
	fmt.Fprintln(n.Out, Sanitize(text)) // one line, because it would look like another account
	return true
}

// AddMore counts notices that are not known one by one.
func (n *Notices) AddMore(count int) { n.more += count }

// Flush prints how many notices were not printed, and where to see them: "see `vedette accounts`".
func (n *Notices) Flush(hint string) {
	if n.more > 0 {
		fmt.Fprintf(n.Out, "and %d more: %s\n", n.more, hint)
	}
	n.more = 0
}
