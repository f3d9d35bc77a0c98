package server

import (
	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/assigner"
)

// reporter tells from the agents' roles who reports an account.
type reporter struct{ registry *assigner.Registry }

// Reports implements accounts.Reporter. An account that waits for its first list has no problem.
func (r reporter) Reports(account vedette.AccountName) (connected, hasProblem bool) {
	member, _ := r.registry.Cacher(account)
	if member == nil {
		return false, false
	}
	role, ok := member.Role(account)
	return ok, role.ErrorKind != "" && role.ErrorKind != vedette.Waiting
}
