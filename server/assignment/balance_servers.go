package assignment

import (
	"fmt"
)

// moveAway offers an account to an agent of another server, to balance agents.
func (f *Fleet) moveAway(m *plannedMove) {
	to := f.findRemote(m.account, m.remote.server, m.remote.Member)
	if to == nil {
		f.skipMove()
		return
	}
	f.balancer.isMoving = true
	f.makeOffer(m.account, to, ReasonBalance)
}

// offerBack offers an account that came from another server, and is not live here, to the agent that had it.
func (f *Fleet) offerBack(m *plannedMove) {
	to := f.findRemote(m.account, m.remote.server, m.remote.Member)
	if to == nil || !m.account.isAtRest() || m.account.offer != nil {
		f.endReturn(false)
		return
	}
	f.balancer.isMoving = true
	f.makeOffer(m.account, to, ReasonReturned)
}

// endRemoteMove ends a move of the balancer to another server. That one waits until the account is live. The next move begins as late as
// within one server; if the offer was not taken, there are no others for now, because the other server may be busy with another move.
func (f *Fleet) endRemoteMove(a *account, o *offer, isTaken bool) {
	b := &f.balancer
	b.isMoving = false
	b.restUntil = f.now.Add(b.cfg.Pause)
	if o.Reason == ReasonReturned {
		f.endReturn(isTaken)
		return
	}
	b.next = nil
	if !isTaken {
		a.stayUntil = f.now.Add(retryMove)
		return
	}
	f.log.Info("account moved to balance agents", "account", a.name, "from", o.From, "server", o.server)
}

// canReceive reports whether an account of another server may move here to balance agents: one at a time, whoever moves it.
func (f *Fleet) canReceive() bool {
	b := &f.balancer
	return b.enabled && !b.cfg.IsWithinServer && b.last == nil && b.examining == 0 && !b.isMoving && b.incoming == nil
}

// examineIncoming asks whether an account of another server may move here.
func (f *Fleet) examineIncoming(a *account, j job) {
	f.balancer.incoming = &j
	f.examine(&plannedMove{account: a})
}

func (f *Fleet) examinedIncoming(e Examined) {
	b := &f.balancer
	j := *b.incoming
	a := f.accounts[e.Account]
	if !e.IsLive || e.IsBusy || a == nil || !a.isAtRest() || a.cacher != 0 || !a.has(j.member) || f.isDraining {
		b.incoming = nil
		f.emit(Decline{Server: j.offer.Server, Account: j.offer.Account, Number: j.offer.Number})
		return
	}
	b.isMoving = true
	b.last = &plannedMove{account: a, to: j.member, denied: e.Denied,
		remote: &remoteStandby{remoteAgent: &remoteAgent{AgentUpdate: AgentUpdate{Member: j.offer.From}, server: j.offer.Server}}}
	f.beginTaking(a, j)
}

// endIncoming ends the move of an account from another server. It must become live here, as after a move within this server.
func (f *Fleet) endIncoming(a *account, j job, hasTaken bool) {
	b := &f.balancer
	b.isMoving, b.incoming = false, nil
	if !hasTaken {
		b.last = nil
		return
	}
	b.last.at = f.now
	f.setWeight(a, min(max(baseWeight, j.offer.Weight), maxUpdateLoad)) // until objects are counted
	f.log.Info("account taken to balance agents", "account", a.name, "from", j.offer.Server, "agent", j.member.ID)
}

func (r *remoteStandby) describe() string {
	if r == nil {
		return ""
	}
	return fmt.Sprintf("an agent of server %s", r.server)
}
