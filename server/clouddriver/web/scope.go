package web

import (
	"net/http"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/readlimit"
)

// Scope is the account and location of a request, and its caller.
type Scope struct {
	Caller   authorize.Caller
	LimitKey readlimit.Caller
	Account  vedette.AccountName
	Location string // a namespace; empty means none
}

// NewScope reads the scope of a request. Deck and Orca write "_" for no namespace.
func NewScope(r *http.Request, p Params) Scope {
	scope := Scope{Caller: authorize.CallerOf(r), LimitKey: readlimit.CallerOf(r), Account: vedette.AccountName(p["account"]),
		Location: p["location"]}
	if scope.Location == "_" {
		scope.Location = ""
	}
	return scope
}
