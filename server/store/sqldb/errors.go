package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/vedette-io/vedette"
)

// ErrData is in the chain of an error that is caused by the data that was written: retrying is
// useless. No other error depends on the data, so the caller must retry or fail as a whole, and
// must not leave out data.
var ErrData = errors.New("the database can't keep this data")

// errorClass classifies the errors of databases by their cause. Each dialect has one table from its codes
// to classes; decision 30 has the reasons.
type errorClass int

const (
	// unknownClass is for codes that are in no table. They are retried, because an object
	// would be lost if an unknown error were blamed on it.
	unknownClass  errorClass = iota
	dataClass                // the data that was written
	busyClass                // a temporary state of the server or of the connection
	diskFullClass            // no room is left, which ends by itself or by an operator
	readOnlyClass            // the server takes no writes, for example after a failover; the connection is closed
	settingsClass            // the user, the database or the URL
)

// dataError is a vedette.Invalid with ErrData in its chain.
type dataError struct{ error }

// DataErrorf returns an error that is caused by the data that was to be written: it is ErrData.
func DataErrorf(format string, args ...any) error {
	return dataError{vedette.Errorf(vedette.Invalid, format, args...)}
}

// Unwrap returns the vedette.Error.
func (e dataError) Unwrap() error { return e.error }

// Is reports whether the target is ErrData.
func (e dataError) Is(target error) bool { return target == ErrData }

// WrapError adds the action to an error, and turns a driver's error into a vedette.Error.
func (d *DB) WrapError(action string, err error) error {
	if err == nil {
		return nil
	}
	if vedette.KindOf(err) == "" {
		err = d.translateError(err)
	}
	return fmt.Errorf("%s: %w", action, err)
}

func (d *DB) translateError(err error) error {
	if d.Dialect.translateError != nil {
		err = d.Dialect.translateError(err)
	}
	switch kind := vedette.KindOf(err); {
	case kind == vedette.Invalid && d.opened.Load() && !errors.Is(err, ErrData):
		// The settings were valid when the store was opened, so the error may be temporary, for
		// example while a password is changed or a file is replaced.
		return vedette.Errorf(vedette.Unavailable, "%w", err)
	case kind == "" && isTransient(err):
		return vedette.Errorf(vedette.Unavailable, "the database did not answer in time: %w", err)
	}
	return err
}

// isTransient reports whether an error only says that the work was interrupted. The errors of
// callers that gave up (context.Canceled) are returned unchanged.
func isTransient(err error) bool {
	for _, transient := range []error{context.DeadlineExceeded, sql.ErrTxDone, sql.ErrConnDone, driver.ErrBadConn} {
		if errors.Is(err, transient) {
			return true
		}
	}
	return false
}
