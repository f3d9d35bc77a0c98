package assignment

import (
	"context"
	"log/slog"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
)

// widening is what an agent that becomes an account's cacher would do to its
// permissions: let in somebody whom those in force keep out. It is nil for an
// agent that would not.
//
// It counts at once if the permissions in force came from that agent, since then
// its configuration has changed. Another agent may be misconfigured, or be a
// stranger that stood by until the cacher was gone: its widening waits until no
// agent that is connected asks for less, and the agent that the permissions came
// from has not come back for the patience of the roster.
type widening struct {
	from, to    *vedette.Permissions
	author      vedette.AgentID // of from
	reason      string          // why it waits; empty where it does not
	waitedTicks int             // for which it has waited
}

func (w *widening) isWaiting() bool { return w != nil && w.reason != "" }

// checkWidening judges what an agent brings.
func (s *slot) checkWidening(m *Member, row *store.AccountRow) *widening {
	requested := m.registration(s.account).Properties.Permissions
	if !requested.AllowsMoreThan(row.Properties.Permissions) {
		return nil
	}
	w := &widening{from: row.Properties.Permissions, to: requested, author: row.PermittedBy}
	if previous := s.matchingPending(m, w); previous != nil {
		w.waitedTicks = previous.waitedTicks
	}
	switch {
	case s.hasNarrowerAgent(m, requested):
		w.reason = "another agent of the account asks for narrower permissions"
	case w.author != m.ID && w.waitedTicks < maxWideningTicks:
		w.reason = "they came from another agent, which may come back"
	}
	return w
}

// matchingPending returns the widening that waits, if it is the same.
func (s *slot) matchingPending(m *Member, w *widening) *widening {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending != nil && slices.Contains(s.queue, m) && !w.to.AllowsMoreThan(s.pending.to) {
		return s.pending
	}
	return nil
}

// hasNarrowerAgent reports whether another agent of the account asks for less.
func (s *slot) hasNarrowerAgent(m *Member, requested *vedette.Permissions) bool {
	return slices.ContainsFunc(s.queued(), func(other *Member) bool {
		return other != m && requested.AllowsMoreThan(other.registration(s.account).Properties.Permissions)
	})
}

// maxWideningTicks is for how many ticks of Run, of a second each, a widening waits for
// the agent that the permissions came from: ten minutes, the grace period of an
// account that nobody serves.
const maxWideningTicks = 600

// widen lets a widening count that has waited for long enough, by giving the seat
// to its holder anew. It needs the turn.
func (s *slot) widen(ctx context.Context, cacher *Member) {
	s.mu.Lock()
	w := s.pending
	s.mu.Unlock()
	if !w.isWaiting() {
		return
	}
	w.waitedTicks++
	if s.hasNarrowerAgent(cacher, w.to) || w.author != cacher.ID && w.waitedTicks < maxWideningTicks {
		return
	}
	if err := s.takeOver(ctx, cacher); err != nil {
		s.registry.log.Warn("permissions could not be changed; tried again", "account", s.account, "agent", cacher.ID, "error", err)
	}
}

// log tells operators of a widening: it decides who may read and change a cluster.
func (w *widening) log(log *slog.Logger, account vedette.AccountName, agent vedette.AgentID) {
	if w == nil {
		return
	}
	log = log.With("account", account, "agent", agent, "before", formatPermissions(w.from), "after", formatPermissions(w.to), "author", w.author)
	if w.isWaiting() {
		log.Warn("security: an agent wants to widen the permissions of an account; they stay as they are", "because", w.reason)
		return
	}
	log.Warn("security: the permissions of an account have become wider")
}

// notice is what operators are shown while a widening waits.
func (w *widening) notice() string {
	if !w.isWaiting() {
		return ""
	}
	return "its permissions (" + formatPermissions(w.to) + ") are wider than those that count (" + formatPermissions(w.from) + ") and wait: " + w.reason
}

// formatPermissions returns permissions for people. An agent may name thousands of roles.
func formatPermissions(p *vedette.Permissions) string {
	text, maxLength := p.String(), 500
	if len(text) <= maxLength {
		return text
	}
	return vedette.CleanText(text[:maxLength], maxLength) + "…"
}
