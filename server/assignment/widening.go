package assignment

import (
	"context"
	"log/slog"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
)

// widening describes wider permissions that an agent requests when it becomes the cacher: they allow
// users whom the permissions in effect deny. It is nil if the agent requests none.
//
// A widening takes effect at once if the permissions in effect came from the same agent, because
// then its configuration has changed. Another agent may be misconfigured or hostile. Its widening
// waits until no connected agent asks for narrower permissions, and until the agent that set the
// permissions has been absent for maxWideningTicks.
type widening struct {
	from, to    *vedette.Permissions
	author      vedette.AgentID // the agent that set from
	reason      string          // why it waits; empty if it does not
	waitedTicks int             // how many ticks it has waited
}

func (w *widening) isWaiting() bool { return w != nil && w.reason != "" }

// checkWidening returns the widening that an agent requests, or nil.
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
		w.reason = "the permissions in effect came from another agent, which may come back"
	}
	return w
}

// matchingPending returns the pending widening if it is the same.
func (s *slot) matchingPending(m *Member, w *widening) *widening {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending != nil && slices.Contains(s.queue, m) && !w.to.AllowsMoreThan(s.pending.to) {
		return s.pending
	}
	return nil
}

// hasNarrowerAgent reports whether another agent of the account asks for narrower permissions.
func (s *slot) hasNarrowerAgent(m *Member, requested *vedette.Permissions) bool {
	return slices.ContainsFunc(s.queued(), func(other *Member) bool {
		return other != m && requested.AllowsMoreThan(other.registration(s.account).Properties.Permissions)
	})
}

// maxWideningTicks is how many ticks of Run, one second each, a widening waits for the agent that
// set the permissions: ten minutes, the default grace period of an account without an agent.
const maxWideningTicks = 600

// widen lets a widening that has waited long enough take effect, by assigning the cacher again. The
// caller must hold the lock.
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
		s.registry.log.Warn("retrying to widen permissions", "account", s.account, "agent", cacher.ID, "error", err)
	}
}

// log reports a widening to operators, because it decides who may read and change a cluster.
func (w *widening) log(log *slog.Logger, account vedette.AccountName, agent vedette.AgentID) {
	if w == nil {
		return
	}
	log = log.With("account", account, "agent", agent, "before", formatPermissions(w.from), "after", formatPermissions(w.to), "author",
		w.author)
	if w.isWaiting() {
		log.Warn("security: wider permissions pending", "because", w.reason)
		return
	}
	log.Warn("security: account permissions widened")
}

// notice returns the text that operators see while a widening waits.
func (w *widening) notice() string {
	if !w.isWaiting() {
		return ""
	}
	return "its permissions (" + formatPermissions(w.to) + ") are wider than those in effect (" + formatPermissions(w.from) +
		") and are pending: " + w.reason
}

// formatPermissions formats permissions for people. It limits the length, because an agent may name
// thousands of roles.
func formatPermissions(p *vedette.Permissions) string {
	text, maxLength := p.String(), 500
	if len(text) <= maxLength {
		return text
	}
	return vedette.CleanText(text[:maxLength], maxLength) + "…"
}
