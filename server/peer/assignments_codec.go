package peer

import (
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/assigner"
	"github.com/vedette-io/vedette/server/assignment"
	"github.com/vedette-io/vedette/server/peer/peerproto"
)

// Limits of what a server is told of one agent or account. They are those of registrations, with room.
const (
	maxUpdateName     = 1024 // bytes
	maxUpdateStandbys = 100  // of one account; more are not told
)

// updateParts splits what is told into messages, which mean the same together.
type updateParts struct {
	isDraining bool
	messages   []*peerproto.Update
	bytes      int // in the last message
}

func (p *updateParts) grow(bytes int) *peerproto.Update {
	if len(p.messages) == 0 || p.bytes > 0 && p.bytes+bytes > maxPart {
		p.messages, p.bytes = append(p.messages, &peerproto.Update{IsDraining: p.isDraining}), 0
	}
	p.bytes += bytes
	return p.messages[len(p.messages)-1]
}

// fromUpdate returns the messages with what is told, at least one.
func fromUpdate(t assigner.Update) []*peerproto.Update {
	p := &updateParts{isDraining: t.IsDraining}
	m := p.grow(10 * len(t.Left))
	for _, id := range t.Left {
		m.Left = append(m.Left, uint64(id))
	}
	for _, a := range t.Agents {
		m := p.grow(len(a.ID) + len(a.ZoneID) + 64)
		m.Agents = append(m.Agents, &peerproto.AgentUpdate{Member: uint64(a.Member), Id: []byte(a.ID), Zone: []byte(a.ZoneID), Load: a.Load,
			IsSilent: a.IsSilent, HeardMillis: a.Heard.Milliseconds(), SettledMillis: a.Settled.Milliseconds()})
	}
	for _, a := range t.Accounts {
		standbys := a.Standbys[:min(len(a.Standbys), maxUpdateStandbys)]
		m := p.grow(len(a.Account) + 32 + 40*len(standbys))
		update := &peerproto.AccountUpdate{Account: []byte(a.Account), Term: int64(a.Term), IsHeld: a.IsHeld}
		for _, s := range standbys {
			update.Standbys = append(update.Standbys, &peerproto.StandbyUpdate{Member: uint64(s.Member), Likeness: s.Likeness[:],
				IsFailing: s.IsFailing})
		}
		m.Accounts = append(m.Accounts, update)
	}
	for _, o := range t.Offers {
		m := p.grow(len(o.Account) + len(o.Reason) + 80)
		m.Offers = append(m.Offers, &peerproto.Offer{Account: []byte(o.Account), Term: int64(o.Term), Number: uint64(o.Number),
			Member: uint64(o.Member), From: uint64(o.From), Reason: string(o.Reason), Weight: o.Weight, Load: o.Load})
	}
	for _, d := range t.Declined {
		m := p.grow(len(d.Account) + 16)
		m.Declined = append(m.Declined, &peerproto.Declined{Account: []byte(d.Account), Number: uint64(d.Number)})
	}
	return p.messages
}

// toUpdate returns what a message tells. A message that names what no server has is refused.
func toUpdate(m *peerproto.Update) (assigner.Update, error) {
	t := assigner.Update{IsDraining: m.GetIsDraining()}
	for _, id := range m.GetLeft() {
		t.Left = append(t.Left, assignment.MemberID(id))
	}
	for _, a := range m.GetAgents() {
		if a.GetMember() == 0 || len(a.GetId()) > maxUpdateName || len(a.GetZone()) > maxUpdateName {
			return t, errBadPeer
		}
		t.Agents = append(t.Agents, assignment.AgentUpdate{Member: assignment.MemberID(a.GetMember()), ID: vedette.AgentID(a.GetId()),
			ZoneID: string(a.GetZone()), Load: a.GetLoad(), IsSilent: a.GetIsSilent(), Heard: toDuration(a.GetHeardMillis()),
			Settled: toDuration(a.GetSettledMillis())})
	}
	for _, a := range m.GetAccounts() {
		if !isUpdateName(a.GetAccount()) || len(a.GetStandbys()) > maxUpdateStandbys {
			return t, errBadPeer
		}
		update := assignment.AccountUpdate{Account: vedette.AccountName(a.GetAccount()), Term: vedette.Term(a.GetTerm()), IsHeld: a.GetIsHeld()}
		for _, s := range a.GetStandbys() {
			if len(s.GetLikeness()) != len(assignment.Likeness{}) {
				return t, errBadPeer
			}
			update.Standbys = append(update.Standbys, assignment.StandbyUpdate{Member: assignment.MemberID(s.GetMember()),
				Likeness: assignment.Likeness(s.GetLikeness()), IsFailing: s.GetIsFailing()})
		}
		t.Accounts = append(t.Accounts, update)
	}
	for _, o := range m.GetOffers() {
		if !isUpdateName(o.GetAccount()) || len(o.GetReason()) > maxUpdateName {
			return t, errBadPeer
		}
		t.Offers = append(t.Offers, assignment.Offer{Account: vedette.AccountName(o.GetAccount()), Term: vedette.Term(o.GetTerm()),
			Number: assignment.Attempt(o.GetNumber()), Member: assignment.MemberID(o.GetMember()), From: assignment.MemberID(o.GetFrom()),
			Reason: assignment.ChangeReason(o.GetReason()), Weight: o.GetWeight(), Load: o.GetLoad()})
	}
	for _, d := range m.GetDeclined() {
		t.Declined = append(t.Declined, assigner.Declined{Account: vedette.AccountName(d.GetAccount()),
			Number: assignment.Attempt(d.GetNumber())})
	}
	return t, nil
}

func isUpdateName(name []byte) bool { return len(name) > 0 && len(name) <= maxUpdateName }

// toDuration returns how long something has lasted. Longer than an hour means the same.
func toDuration(millis int64) time.Duration {
	return time.Duration(min(max(0, millis), time.Hour.Milliseconds())) * time.Millisecond
}
