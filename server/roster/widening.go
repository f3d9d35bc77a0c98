package roster

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
	from, to *vedette.Permissions
	author   vedette.AgentID // of from
	reason   string          // why it waits; empty where it does not
	ticks    int             // for which it has waited
}

func (w *widening) waits() bool { return w != nil && w.reason != "" }

// widening judges what an agent brings.
func (s *seat) widening(m *Member, row *store.AccountRow) *widening {
	wanted := m.registration(s.account).Properties.Permissions
	if !wanted.AllowsMoreThan(row.Properties.Permissions) {
		return nil
	}
	w := &widening{from: row.Properties.Permissions, to: wanted, author: row.PermittedBy}
	if before := s.pendingOf(m, w); before != nil {
		w.ticks = before.ticks
	}
	switch {
	case s.narrower(m, wanted):
		w.reason = "another agent of the account asks for narrower permissions"
	case w.author != m.ID && w.ticks < mostPatience:
		w.reason = "they came from another agent, which may come back"
	}
	return w
}

// pendingOf returns the widening that waits, if it is the same.
func (s *seat) pendingOf(m *Member, w *widening) *widening {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending != nil && slices.Contains(s.queue, m) && !w.to.AllowsMoreThan(s.pending.to) {
		return s.pending
	}
	return nil
}

// narrower reports whether another agent of the account asks for less.
func (s *seat) narrower(m *Member, wanted *vedette.Permissions) bool {
	return slices.ContainsFunc(s.waiting(), func(other *Member) bool {
		return other != m && wanted.AllowsMoreThan(other.registration(s.account).Properties.Permissions)
	})
}

// mostPatience is for how many ticks of Run, of a second each, a widening waits for
// the agent that the permissions came from: ten minutes, the grace period of an
// account that nobody serves.
const mostPatience = 600

// widen lets a widening count that has waited for long enough, by giving the seat
// to its holder anew. It needs the turn.
func (s *seat) widen(ctx context.Context, holder *Member) {
	s.mu.Lock()
	w := s.pending
	s.mu.Unlock()
	if !w.waits() {
		return
	}
	w.ticks++
	if s.narrower(holder, w.to) || w.author != holder.ID && w.ticks < mostPatience {
		return
	}
	if err := s.takeOver(ctx, holder); err != nil {
		s.roster.log.Warn("permissions could not be changed; tried again", "account", s.account, "agent", holder.ID, "error", err)
	}
}

// log tells operators of a widening: it decides who may read and change a cluster.
func (w *widening) log(log *slog.Logger, account vedette.AccountName, agent vedette.AgentID) {
	if w == nil {
		return
	}
	log = log.With("account", account, "agent", agent, "before", shorten(w.from), "after", shorten(w.to), "author", w.author)
	if w.waits() {
		log.Warn("security: an agent wants to widen the permissions of an account; they stay as they are", "because", w.reason)
		return
	}
	log.Warn("security: the permissions of an account have become wider")
}

// notice is what operators are shown while a widening waits.
func (w *widening) notice() string {
	if !w.waits() {
		return ""
	}
	return "its permissions (" + shorten(w.to) + ") are wider than those that count (" + shorten(w.from) + ") and wait: " + w.reason
}

// shorten returns permissions for people. An agent may name thousands of roles.
func shorten(p *vedette.Permissions) string {
	text, most := p.String(), 500
	if len(text) <= most {
		return text
	}
	return vedette.CleanText(text[:most], most) + "…"
}
