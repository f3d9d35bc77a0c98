package authorize

import (
	"context"

	"github.com/vedette-io/vedette"
)

// AllowAll grants everything to everyone. Only tests should use it.
type AllowAll struct{}

// CheckAccount returns nil.
func (AllowAll) CheckAccount(context.Context, Caller, vedette.AccountName, Access) error { return nil }

// CheckApplication returns nil.
func (AllowAll) CheckApplication(context.Context, Caller, string, Access) error { return nil }

// ReadableApplications returns nil, which means all.
func (AllowAll) ReadableApplications(context.Context, Caller) (func(string) bool, error) {
	return nil, nil
}

// Readable returns nil, which means all.
func (AllowAll) Readable(context.Context, Caller) (func(vedette.AccountName) bool, error) {
	return nil, nil
}
