package bearer

import (
	"context"
	"sync/atomic"
)

// Variable is a token that the configuration sets, and replaces when it is reloaded. Streams that are
// open keep the token with which they began. It is safe for concurrent use.
type Variable struct{ token atomic.Pointer[string] }

// NewVariable returns a Variable with its first token.
func NewVariable(token string) *Variable {
	v := &Variable{}
	v.Set(token)
	return v
}

// Set replaces the token.
func (v *Variable) Set(token string) { v.token.Store(&token) }

// Token returns the token.
func (v *Variable) Token(context.Context) (string, error) { return *v.token.Load(), nil }

// Rejected does nothing, because there is no other token.
func (*Variable) Rejected() {}
