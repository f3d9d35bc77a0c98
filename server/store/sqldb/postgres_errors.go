package sqldb

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/vedette-io/vedette"
)

// postgresClasses has SQLSTATEs, and the classes that are their first two characters. A whole
// SQLSTATE takes precedence.
var postgresClasses = map[string]errorClass{
	"22": dataClass, // data exception
	"23": dataClass, // integrity constraint violation
	"54": dataClass, // program limit exceeded
	// Another transaction has written the same key: a retry finds it.
	"23505": busyClass,
	"23P01": busyClass,

	"08":    busyClass, // connection
	"40":    busyClass, // transaction rollback, for example after a deadlock
	"53":    busyClass, // resources
	"57":    busyClass, // operator intervention
	"58":    busyClass, // system error
	"55P03": busyClass, // a lock is not available
	"25P03": busyClass, // idle in a transaction for too long
	"25P04": busyClass, // transaction timeout
	"26000": busyClass, // a prepared statement that a connection pooler has lost
	"XX000": busyClass, // an internal error

	"53100": diskFullClass,
	"25006": readOnlyClass,

	"28":    settingsClass, // authentication
	"3D000": settingsClass, // no such database
	"42501": settingsClass, // insufficient privilege
}

func postgresClass(state string) errorClass {
	if class, named := postgresClasses[state]; named {
		return class
	}
	return postgresClasses[state[:min(2, len(state))]]
}

// translatePostgresError goes by SQLSTATE. An error that is not an answer of the server is an
// error of the connection.
func translatePostgresError(err error) error {
	err = shortenAttempts(err)
	var e *pgconn.PgError
	if isPostgresOutdated(err) {
		return vedette.Errorf(vedette.Unavailable, "another server is migrating the PostgreSQL database: try again: %w", err)
	}
	if errors.As(err, &e) {
		return translateSQLState(e.Code, err)
	}
	if translated := translatePostgresTLS(err); translated != nil {
		return translated
	}
	var network net.Error
	var connect *pgconn.ConnectError
	if errors.As(err, &network) || errors.As(err, &connect) || pgconn.SafeToRetry(err) || isConnectionError(err) {
		return vedette.Errorf(vedette.Unavailable, "the PostgreSQL server does not answer: %w", err)
	}
	return err
}

// noPostgresTLS is the driver's text for a server without TLS; it has no type for that.
const noPostgresTLS = "server refused TLS connection"

// translatePostgresTLS explains errors of TLS, which retrying does not solve. It returns nil for
// other errors.
func translatePostgresTLS(err error) error {
	switch last := lastAttempt(err); {
	case last == nil:
		return nil
	case strings.Contains(last.Error(), noPostgresTLS):
		return vedette.Errorf(vedette.Invalid,
			"the URL requires TLS (sslmode), which the PostgreSQL server does not offer: set ssl=on there, or set sslmode=disable in the URL: %w", err)
	case isCertificateError(last):
		return vedette.Errorf(vedette.Invalid,
			"the certificate of the PostgreSQL server is not trusted: name its authority with sslrootcert=FILE in the URL, and connect to a host name that the certificate has: %w", err)
	}
	return nil
}

// isCertificateError reports whether a certificate was not accepted. With verify-ca, the driver verifies it
// itself, and its errors are those of x509.
func isCertificateError(err error) bool {
	var verification *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var hostname x509.HostnameError
	return errors.As(err, &verification) || errors.As(err, &authority) || errors.As(err, &invalid) || errors.As(err, &hostname)
}

// lastAttempt returns why the last of several attempts to connect failed; nil if the error is another
// one. The driver tries each address of a host, and with sslmode=prefer each with and without TLS.
func lastAttempt(err error) error {
	var connect *pgconn.ConnectError
	if !errors.As(err, &connect) {
		return nil
	}
	cause := connect.Unwrap()
	if attempts, ok := cause.(interface{ Unwrap() []error }); ok && len(attempts.Unwrap()) > 0 {
		all := attempts.Unwrap()
		return all[len(all)-1]
	}
	return cause
}

// shortenAttempts describes an error to connect in one line, without repetitions. The driver's text has
// a line for each attempt: the same again without TLS, or that there is no TLS, which matters only if
// it is the reason.
func shortenAttempts(err error) error {
	var connect *pgconn.ConnectError
	if !errors.As(err, &connect) {
		return err
	}
	attempts, ok := connect.Unwrap().(interface{ Unwrap() []error })
	if !ok {
		return err
	}
	var texts, withoutTLS []string
	for _, attempt := range attempts.Unwrap() {
		if text := attempt.Error(); strings.Contains(text, noPostgresTLS) {
			withoutTLS = append(withoutTLS, text)
		} else if !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	if len(texts) == 0 {
		texts = slices.Compact(withoutTLS)
	}
	return attemptsError{fmt.Sprintf("connect as user %s to database %s: %s", connect.Config.User, connect.Config.Database, strings.Join(texts, "; ")), err}
}

// attemptsError is an error of the driver with another text.
type attemptsError struct {
	text string
	err  error
}

func (e attemptsError) Error() string { return e.text }

func (e attemptsError) Unwrap() error { return e.err }

func translateSQLState(state string, err error) error {
	switch postgresClass(state) {
	case dataClass:
		return DataErrorf("PostgreSQL cannot store a value: %w", err)
	case busyClass:
		return vedette.Errorf(vedette.Unavailable, "%s: %w", postgresBusyMessage(state), err)
	case diskFullClass:
		return withCause(ErrDiskFull, vedette.Errorf(vedette.Unavailable,
			"the file system of the PostgreSQL server's data directory is full: free some space there: %w", err))
	case readOnlyClass:
		return withCause(ErrReadOnly, vedette.Errorf(vedette.Unavailable,
			"the PostgreSQL server is read-only, like a standby: connect to the primary: %w", err))
	case settingsClass:
		return vedette.Errorf(vedette.Invalid,
			"the PostgreSQL server rejects the user or the database: check the URL and the user's privileges: %w", err)
	}
	return err
}

func postgresBusyMessage(state string) string {
	switch state {
	case "53300":
		return "the PostgreSQL server has no free connection: raise max_connections, or lower this server's"
	}
	return "the PostgreSQL server is temporarily unable to execute the statement"
}

func isPostgresReadOnly(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && postgresClass(e.Code) == readOnlyClass
}

func isPostgresUniqueViolation(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && e.Code == "23505"
}

func isPostgresRetryable(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && (e.Code == "40001" || e.Code == "40P01")
}

// isPostgresTerminated recognizes a server that shuts down, and the end of a connection at an administrator's command, as in a switchover.
func isPostgresTerminated(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && (e.Code == "57P01" || e.Code == "57P02" || e.Code == "57P03")
}

// isPostgresOutdated recognizes "cached plan must not change result type" by where PostgreSQL says it, because its texts are translated
// and its SQLSTATE is that of all features that are not supported.
func isPostgresOutdated(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && e.Code == "0A000" && e.Routine == "RevalidateCachedQuery"
}

func isPostgresLockTimeout(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && e.Code == "55P03"
}
