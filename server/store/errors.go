package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/vedette-io/vedette"
)

// ErrData is in the chain of an error that names the data of what was written: the
// database can't keep it, however often it is tried. No other error says anything of
// the data, so whoever gets one tries again, or gives up as a whole, and leaves
// nothing out.
var ErrData = errors.New("the database can't keep this data")

// errorClass says what an error of a database is about. Each dialect has one table
// from its codes to classes; decision 30 has the reasons.
type errorClass int

const (
	// unknownClass is what no table names. It is tried again: to take an unknown
	// error for the fault of an object would lose that object without need.
	unknownClass  errorClass = iota
	dataClass                // the data that was written
	busyClass                // the server, or the way to it, at this moment
	readOnlyClass            // a server that takes no writes, as after a failover: the connection goes too
	settingsClass            // the user, the database or the URL
)

// dataError is a vedette.Invalid with ErrData in its chain.
type dataError struct{ error }

func dataErrorf(format string, args ...any) error {
	return dataError{vedette.Errorf(vedette.Invalid, format, args...)}
}

// Unwrap returns the vedette.Error.
func (e dataError) Unwrap() error { return e.error }

// Is reports whether the target is ErrData.
func (e dataError) Is(target error) bool { return target == ErrData }

// wrapError turns a driver's error into ours, and names what was being done.
func (s *Store) wrapError(action string, err error) error {
	if err == nil {
		return nil
	}
	if vedette.KindOf(err) == "" {
		err = s.translateError(err)
	}
	return fmt.Errorf("%s: %w", action, err)
}

func (s *Store) translateError(err error) error {
	if s.dialect.translateError != nil {
		err = s.dialect.translateError(err)
	}
	switch kind := vedette.KindOf(err); {
	case kind == vedette.Invalid && s.opened.Load() && !errors.Is(err, ErrData):
		// It was not so when the store was opened, so it may pass as it came: a
		// password that is being changed, a file that is being replaced.
		return vedette.Errorf(vedette.Unavailable, "%w", err)
	case kind == "" && isTransient(err):
		return vedette.Errorf(vedette.Unavailable, "the database did not answer in time: %w", err)
	}
	return err
}

// isTransient reports whether an error says that a deed was broken off, and so nothing of
// what it was about. A caller that gave up is told so as it is.
func isTransient(err error) bool {
	for _, transient := range []error{context.DeadlineExceeded, sql.ErrTxDone, sql.ErrConnDone, driver.ErrBadConn} {
		if errors.Is(err, transient) {
			return true
		}
	}
	return false
}
