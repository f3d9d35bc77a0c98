package assigner

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
)

const (
	// duplicateInterval is how often agents with one ID are looked for.
	duplicateInterval = 10 * time.Second
	// duplicateAfter is how long they may be connected together. During a rolling update of agents
	// with a configured ID, the old one runs until the new one is ready.
	duplicateAfter = time.Minute
	// maxNamedDuplicates bounds each text about agents with one ID. If a whole fleet has one, because it
	// shares a file, the texts about n agents would otherwise name n*n.
	maxNamedDuplicates = 5
)

// findDuplicates notes which agents share an ID, and logs each ID once. Both stay connected: if the
// second one were refused, a rolling update would wait for it for ever.
//
// The session of an agent that was restarted, or lost its connection, may still exist when the
// agent is back. It does not count, because nothing was heard of it since.
func (r *Registry) findDuplicates(now time.Time) {
	byID := map[vedette.AgentID][]*Member{}
	for _, m := range r.Members() {
		byID[m.ID] = append(byID[m.ID], m)
	}
	for id, members := range byID {
		alive := aliveTogether(members, now)
		isNew := false
		for _, m := range members {
			isNew = m.setDuplicates(alive) || isNew
		}
		if isNew {
			r.log.Warn("several agents have the same ID: set agentId to another value in the configuration of each", "agent", id,
				"agents", describeMembers(alive, nil))
		}
	}
}

// aliveTogether returns the members that were heard of after all of them were connected, if that
// was long enough ago and there are several.
func aliveTogether(members []*Member, now time.Time) []*Member {
	var newest time.Time
	for _, m := range members {
		if m.Connected.After(newest) {
			newest = m.Connected
		}
	}
	alive := slices.DeleteFunc(slices.Clone(members), func(m *Member) bool { return !m.lastHeard().After(newest) })
	if len(alive) < 2 || now.Sub(newest) < duplicateAfter {
		return nil
	}
	slices.SortFunc(alive, func(a, b *Member) int { return a.Connected.Compare(b.Connected) })
	return alive
}

// setDuplicates notes the agents that share the ID of this one, and reports whether there were
// none before.
func (m *Member) setDuplicates(alive []*Member) (isNew bool) {
	notice := ""
	if slices.Contains(alive, m) {
		notice = "its ID is also that of " + describeMembers(alive, m) + ": set agentId to another value in the configuration of each"
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	isNew = m.duplicates == "" && notice != ""
	m.duplicates = notice
	return isNew
}

// describeMembers returns "the agent on host a (v1, connected since T) and the agent on ...", without
// one of the agents if it is not nil. It names at most maxNamedDuplicates agents.
func describeMembers(members []*Member, without *Member) string {
	var texts []string
	more := 0
	for _, m := range members {
		switch {
		case m == without:
		case len(texts) == maxNamedDuplicates:
			more++
		default:
			texts = append(texts, fmt.Sprintf("the agent on host %s (%s, connected since %s)", m.Hostname, m.Version,
				m.Connected.UTC().Format(time.RFC3339)))
		}
	}
	if more > 0 {
		texts = append(texts, fmt.Sprintf("%d more", more))
	}
	return strings.Join(texts, " and ")
}

// Notice returns what is wrong with the agent itself; "" if nothing is known.
func (m *Member) Notice() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.duplicates
}

func (m *Member) lastHeard() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.heardAt
}
