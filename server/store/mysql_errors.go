package store

import (
	"crypto/tls"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/vedette-io/vedette"
)

// explainMySQL goes by the server's error numbers.
func explainMySQL(err error) error {
	var e *mysql.MySQLError
	told := errors.As(err, &e)
	if told {
		if explained := explainNumber(e.Number, err); explained != nil {
			return explained
		}
	}
	switch {
	case lostConnection(err) || errors.Is(err, mysql.ErrInvalidConn):
		return vedette.Errorf(vedette.Unavailable, "the MySQL server does not answer: %w", err)
	case told:
		return err
	}
	return explainHandshake(err)
}

// explainNumber returns nil where a number says nothing of the server or its user: an
// object is to blame then.
func explainNumber(number uint16, err error) error {
	switch number {
	case 1021, 1114, 3, 1026: // disk full, table is full, errors on writing a file
		return vedette.Errorf(vedette.Unavailable, "the file system of the MySQL server's data directory is full: free some space there: %w", err)
	case 1040, 1203, 1226:
		return vedette.Errorf(vedette.Unavailable, "the MySQL server has no free connection: raise max_connections, or lower this server's: %w", err)
	case 1290, 1792, 1836:
		return vedette.Errorf(vedette.Unavailable, "the MySQL server is read-only, as a replica is: connect to the primary: %w", err)
	case 1053, 1077, 1079, 1080, 1205, 1213, 1158, 1159, 1160, 1161, 1927, 2006, 2013, 3024,
		1129, 3032, // no connections of this host, or of anyone
		1317, 3169, 4031, // interrupted, killed, idle for too long
		3100, 3101: // the other servers of a group did not agree
		return vedette.Errorf(vedette.Unavailable, "the MySQL server could not do it now: %w", err)
	case 1044, 1045, 1049, 1130, 1142, 1227, 1524, 1698,
		1820, 1862, 3118, 4151: // a password that expired, a locked account, which is 4151 of MariaDB
		return vedette.Errorf(vedette.Invalid, "the MySQL server refuses this user or database: check the URL and the user's rights: %w", err)
	case 1153:
		return vedette.Errorf(vedette.Invalid, "an object is bigger than the MySQL server's max_allowed_packet: raise it: %w", err)
	case 3159:
		return vedette.Errorf(vedette.Invalid, "the MySQL server takes connections with TLS only: add tls=true to the query of the URL: %w", err)
	}
	return nil
}

// explainHandshake explains what the driver finds out itself while it opens a connection.
func explainHandshake(err error) error {
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &certificate):
		return vedette.Errorf(vedette.Invalid, "the certificate of the MySQL server is refused: have it signed for this host name by an authority that this system trusts (SSL_CERT_FILE names a file of one's own), or set tls=skip-verify in the URL to have it unchecked: %w", err)
	case errors.Is(err, mysql.ErrNoTLS):
		return vedette.Errorf(vedette.Invalid, "the MySQL server does not speak TLS, which the URL asks for: set that up, or take tls out of the URL: %w", err)
	case strings.Contains(err.Error(), "caching_sha2_password"):
		return vedette.Errorf(vedette.Invalid, "the MySQL server has no RSA keys for passwords that come without TLS: add tls=true to the query of the URL: %w", err)
	}
	return err
}

// lostConnection reports whether an error came from the line and not from the
// database.
func lostConnection(err error) bool {
	var network net.Error
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.As(err, &network)
}

func mysqlTaken(err error) bool {
	var e *mysql.MySQLError
	return errors.As(err, &e) && e.Number == 1062
}

func mysqlAgain(err error) bool {
	var e *mysql.MySQLError
	return errors.As(err, &e) && (e.Number == 1213 || e.Number == 1205)
}
