package gate

import (
	"context"
	"encoding/json"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/roster"
	"github.com/vedette-io/vedette/wire"
)

// register asks the roster for a role. It runs within receive: an agent with
// many accounts registers them one after the other, so that a storm of agents
// asks the database as many questions at once as there are agents, not accounts.
func (s *session) register(ctx context.Context, r *wire.Register) error {
	account := vedette.Account{
		Name: vedette.AccountName(r.GetAccount()), Cluster: wire.ToCluster(r.GetCluster()), Namespaces: r.GetNamespaces(),
		Shape: r.GetShape() + "." + s.gate.lifted,
	}
	if err := json.Unmarshal(r.GetProperties(), &account.Properties); err != nil {
		s.assign(roster.Assignment{Account: account.Name, Role: roster.Refused,
			Message: "the account's properties are no JSON object that this server can read: " + err.Error()})
		return nil
	}
	return s.member.Register(ctx, account)
}

var roles = map[roster.Role]wire.Assignment_Role{
	roster.Cacher:  wire.Assignment_ROLE_CACHER,
	roster.Standby: wire.Assignment_ROLE_STANDBY,
	roster.Refused: wire.Assignment_ROLE_REFUSED,
}

// assign tells the agent its role. The roster calls it.
func (s *session) assign(a roster.Assignment) {
	s.out.put(&wire.ServerMessage{Message: &wire.ServerMessage_Assignment{Assignment: &wire.Assignment{
		Account: string(a.Account), Role: roles[a.Role], Term: int64(a.Term),
		Marks: wire.FromMarks(a.Marks), Message: a.Message,
	}}})
}
