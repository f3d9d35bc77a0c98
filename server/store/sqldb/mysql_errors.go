package sqldb

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

// mysqlClasses has the error numbers of MySQL and MariaDB. From 3000 on the two use numbers
// differently, and only those are included that mean the same.
var mysqlClasses = map[uint16]errorClass{
	1048: dataClass, // a column can't be null
	1118: dataClass, // the row is too big
	1153: dataClass, // a packet is bigger than max_allowed_packet
	1264: dataClass, // out of range
	1265: dataClass, // truncated
	1292: dataClass, // truncated, wrong value
	1300: dataClass, // invalid characters
	1301: dataClass, // a result is bigger than max_allowed_packet
	1366: dataClass, // wrong value for the column
	1367: dataClass, // illegal value
	1406: dataClass, // too long
	1411: dataClass, // wrong value for a function
	1690: dataClass, // out of range, of an expression

	1040: busyClass, 1203: busyClass, 1226: busyClass, // connections
	1030: busyClass,                                                    // a storage engine's error, mostly of the disk
	1047: busyClass,                                                    // a cluster node that cannot serve
	1053: busyClass, 1077: busyClass, 1079: busyClass, 1080: busyClass, // shutdown
	1062: busyClass,                                                    // another transaction has written the same key: a retry finds it
	1105: busyClass,                                                    // unknown error
	1158: busyClass, 1159: busyClass, 1160: busyClass, 1161: busyClass, // network
	1180: busyClass, 1181: busyClass, // a commit or a rollback failed
	1129: busyClass, 3032: busyClass, // no connections from this host, or none at all
	1205: busyClass, 1213: busyClass, // locks
	// interrupted, killed, or idle for too long
	1317: busyClass, 1927: busyClass, 1969: busyClass, 2006: busyClass, 2013: busyClass, 3024: busyClass, 3169: busyClass, 4031: busyClass,
	3100: busyClass, 3101: busyClass, // the other servers of a group disagreed

	// the disk or a table is full
	3: diskFullClass, 1021: diskFullClass, 1026: diskFullClass, 1114: diskFullClass, 3675: diskFullClass,

	1290: readOnlyClass, 1792: readOnlyClass, 1836: readOnlyClass,

	1044: settingsClass, 1045: settingsClass, 1049: settingsClass, 1130: settingsClass, 1142: settingsClass, 1227: settingsClass,
	1524: settingsClass, 1698: settingsClass,
	// an expired password or a locked account, which is 4151 in MariaDB
	1820: settingsClass, 1862: settingsClass, 3118: settingsClass, 4151: settingsClass,
	3159: settingsClass, // a connection without TLS
}

// translateMySQLError goes by the server's error numbers.
func translateMySQLError(err error) error {
	var e *mysql.MySQLError
	isServerError := errors.As(err, &e)
	if isServerError {
		if translated := translateMySQLNumber(e.Number, err); translated != nil {
			return translated
		}
	}
	switch {
	case isConnectionError(err) || errors.Is(err, mysql.ErrInvalidConn):
		return vedette.Errorf(vedette.Unavailable, "the MySQL server does not answer: %w", err)
	case errors.Is(err, mysql.ErrPktTooLarge): // the driver notices before the server
		return translateMySQLNumber(1153, err)
	case isServerError:
		return err
	}
	return translateMySQLHandshake(err)
}

// translateMySQLNumber returns nil for a number that is not in mysqlClasses.
func translateMySQLNumber(number uint16, err error) error {
	switch mysqlClasses[number] {
	case dataClass:
		if number == 1153 {
			return DataErrorf("an object is larger than the MySQL server's max_allowed_packet: raise max_allowed_packet: %w", err)
		}
		return DataErrorf("MySQL cannot store a value: %w", err)
	case busyClass:
		return vedette.Errorf(vedette.Unavailable, "%s: %w", mysqlBusyMessage(number), err)
	case diskFullClass:
		return withCause(ErrDiskFull, vedette.Errorf(vedette.Unavailable,
			"the file system of the MySQL server's data directory is full: free some space there: %w", err))
	case readOnlyClass:
		return withCause(ErrReadOnly, vedette.Errorf(vedette.Unavailable,
			"the MySQL server is read-only, like a replica: connect to the primary: %w", err))
	case settingsClass:
		return vedette.Errorf(vedette.Invalid, "%s: %w", mysqlSettingsMessage(number), err)
	}
	return nil
}

func mysqlSettingsMessage(number uint16) string {
	switch number {
	case 3159:
		return "the MySQL server requires TLS: add tls=true to the query of the URL"
	case 1044, 1045, 1698:
		return "the MySQL server rejects the user or the database: check the URL and the user's privileges; " +
			"if both are right, an anonymous user of this host may be chosen instead: create the user for this host too, or drop the anonymous one"
	}
	return "the MySQL server rejects the user or the database: check the URL and the user's privileges"
}

func mysqlBusyMessage(number uint16) string {
	switch number {
	case 1040, 1203, 1226:
		return "the MySQL server has no free connection: raise max_connections, or lower this server's"
	}
	return "the MySQL server is temporarily unable to execute the statement"
}

// translateMySQLHandshake explains errors that the driver detects itself while it opens a
// connection.
func translateMySQLHandshake(err error) error {
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &certificate):
		return vedette.Errorf(vedette.Invalid,
			"the certificate of the MySQL server is not trusted: use one for this host name, signed by an authority that this system trusts (SSL_CERT_FILE names a file with more authorities), or set tls=skip-verify in the URL to skip verification: %w", err)
	case errors.Is(err, mysql.ErrNoTLS):
		return vedette.Errorf(vedette.Invalid,
			"the URL requires TLS, which the MySQL server does not support: enable TLS there, or remove tls from the URL: %w", err)
	case strings.Contains(err.Error(), "caching_sha2_password"):
		return vedette.Errorf(vedette.Invalid,
			"the MySQL server has no RSA keys to protect passwords without TLS: add tls=true to the query of the URL: %w", err)
	}
	return err
}

// isConnectionError reports whether an error comes from the connection and not from the database.
func isConnectionError(err error) bool {
	var network net.Error
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) ||
		errors.Is(err, net.ErrClosed) || errors.As(err, &network)
}

func isMySQLReadOnly(err error) bool {
	var e *mysql.MySQLError
	return errors.As(err, &e) && mysqlClasses[e.Number] == readOnlyClass
}

func isMySQLUniqueViolation(err error) bool {
	var e *mysql.MySQLError
	return errors.As(err, &e) && e.Number == 1062
}

func isMySQLRetryable(err error) bool {
	var e *mysql.MySQLError
	return errors.As(err, &e) && (e.Number == 1213 || e.Number == 1205)
}

// isMySQLTerminated recognizes a server that shuts down, the end of a connection at an administrator's command, and a node that is cut
// off from its Galera cluster.
func isMySQLTerminated(err error) bool {
	var e *mysql.MySQLError
	return errors.As(err, &e) && (e.Number == 1047 || e.Number == 1053 || e.Number == 1927)
}
