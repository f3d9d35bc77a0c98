package agent

import (
	"strings"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/keypair"
)

// fileCondition is whether the certificates in the files of the agent are in use.
type fileCondition struct {
	mu   sync.Mutex
	last vedette.Condition
}

// SetFileStates reports what the files of certificates contain, so that users see files that cannot be used.
func (a *Agent) SetFileStates(states []keypair.UseState) {
	a.cfg.Metrics.FilesRead(states)
	if len(states) == 0 {
		return
	}
	var problems []string
	for _, s := range states {
		if s.Problem != nil {
			problems = append(problems, s.Describe())
		}
	}
	condition := vedette.Condition{Type: vedette.FilesCurrent, Holds: true, Reason: "InUse"}
	if len(problems) > 0 {
		condition = vedette.Condition{Type: vedette.FilesCurrent, Reason: "Invalid", Message: strings.Join(problems, "; ")}
	}
	a.files.mu.Lock()
	defer a.files.mu.Unlock()
	a.files.last = nextCondition(a.files.last, condition, time.Now())
	a.link.ReportConditions("", []vedette.Condition{a.files.last})
}
