package assignment

import "github.com/vedette-io/vedette"

// permissionIncrease describes wider permissions that an agent requests when it becomes the cacher: they allow
// users whom the permissions in effect deny. It is nil if the agent requests none.
//
// An increase takes effect at once if the permissions in effect came from the same agent, because
// then its configuration has changed. Another agent may be misconfigured or hostile. Its increase
// waits until no connected agent asks for narrower permissions, and until the agent that set the
// permissions has been absent for maxIncreaseTicks.
type permissionIncrease struct {
	from, to    *vedette.Permissions
	requested   *Prepared       // with to
	author      vedette.AgentID // the agent that set from
	reason      string          // why it waits; empty if it does not
	waitedTicks int             // how many ticks it has waited
	narrower    *narrowerAgent  // for which it waits; nil for none
}

// narrowerAgent is an agent that asks for narrower permissions, as it registered them.
type narrowerAgent struct {
	member   *member
	prepared *Prepared
}

// maxIncreaseTicks is how many ticks of one second each an increase waits for the agent that
// set the permissions: ten minutes, the default grace period of an account without an agent. It counts ticks and
// not time, because a server that was frozen must not take its own pause for the absence of the agent.
const maxIncreaseTicks = 600

func (p *permissionIncrease) isWaiting() bool { return p != nil && p.reason != "" }

// checkIncrease returns the increase that an agent requests, or nil.
func (f *Fleet) checkIncrease(a *account, j job) *permissionIncrease {
	if !j.prepared.permissions.AllowsMoreThan(j.stored.Prepared.permissions) {
		return nil
	}
	p := &permissionIncrease{from: j.stored.Properties.Permissions, to: j.registered.Properties.Permissions, requested: j.prepared,
		author: j.stored.PermittedBy}
	if a.increase != nil && a.has(j.member) && !j.prepared.permissions.AllowsMoreThan(a.increase.requested.permissions) { // the same as before
		p.waitedTicks = a.increase.waitedTicks
	}
	p.narrower = f.findNarrower(a, j.member, j.prepared)
	switch {
	case p.narrower != nil:
		p.reason = "another agent of the account asks for narrower permissions"
	case p.author != j.member.ID && p.waitedTicks < maxIncreaseTicks:
		p.reason = "the permissions in effect came from another agent, which may come back"
	}
	return p
}

// maxComparedRoles bounds how many roles are compared at once, because everybody waits. It takes some milliseconds.
const maxComparedRoles = 1_000_000

// findNarrower returns another agent of the account that asks for narrower permissions; nil if there is none. If there are too many
// roles to compare, the next agent counts as one that does, so that its permissions are not ignored.
func (f *Fleet) findNarrower(a *account, m *member, requested *Prepared) *narrowerAgent {
	compared := 0
	for _, other := range a.candidates {
		prepared := other.registered[a.name].prepared
		if other == m || prepared.digests["permissions"] == requested.digests["permissions"] {
			continue
		}
		compared += requested.permissions.Count() + prepared.permissions.Count()
		if compared > maxComparedRoles || requested.permissions.AllowsMoreThan(prepared.permissions) {
			return &narrowerAgent{other, prepared}
		}
	}
	return nil
}

// isIn reports whether the agent still asks for the same permissions. That is asked each second, and permissions may have very many roles.
func (n *narrowerAgent) isIn(a *account) bool {
	return n != nil && a.has(n.member) && n.member.registered[a.name].prepared == n.prepared
}

// retryIncrease lets an increase that has waited long enough take effect, by assigning the cacher again.
func (f *Fleet) retryIncrease(a *account) {
	p, cacher := a.increase, f.members[a.cacher]
	if !p.isWaiting() {
		return
	}
	p.waitedTicks++
	if p.author != cacher.ID && p.waitedTicks < maxIncreaseTicks || p.narrower.isIn(a) {
		return
	}
	if p.narrower = f.findNarrower(a, cacher, p.requested); p.narrower != nil {
		return
	}
	f.takeOver(a, job{kind: increasing, member: cacher})
}

// logIncrease reports an increase to operators, because it decides who may read and change a cluster.
func (f *Fleet) logIncrease(a *account, m *member, p *permissionIncrease) {
	if p == nil {
		return
	}
	before, after := formatPermissions(p.from), formatPermissions(p.to)
	if p.isWaiting() {
		f.log.Warn("security: wider permissions pending", "account", a.name, "agent", m.ID, "before", before, "after", after, "author", p.author,
			"because", p.reason)
		return
	}
	f.log.Warn("security: account permissions widened", "account", a.name, "agent", m.ID, "before", before, "after", after, "author", p.author)
}

// notice returns the text that operators see while an increase waits.
func (p *permissionIncrease) notice() string {
	if !p.isWaiting() {
		return ""
	}
	return "its permissions (" + formatPermissions(p.to) + ") are wider than those in effect (" + formatPermissions(p.from) +
		") and are pending: " + p.reason
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
