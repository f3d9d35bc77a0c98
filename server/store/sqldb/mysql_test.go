package sqldb

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/vedette-io/vedette"
)

// TestMySQLErrors checks errors that only some servers or settings return.
func TestMySQLErrors(t *testing.T) {
	for _, test := range []struct {
		err         error
		kind        vedette.ErrorKind
		wantMessage string
	}{
		{&mysql.MySQLError{Number: 3159, Message: "Connections using insecure transport are prohibited"}, vedette.Invalid, "add tls=true"},
		{&mysql.MySQLError{Number: 1524, Message: "Plugin 'mysql_native_password' is not loaded"}, vedette.Invalid, "rejects the user"},
		{errors.New("unexpected resp from server for caching_sha2_password, perform full authentication"), vedette.Invalid, "add tls=true"},
		{&mysql.MySQLError{Number: 3032, Message: "The server is currently in offline mode"}, vedette.Unavailable, "temporarily unable"},
		{&mysql.MySQLError{Number: 1317, Message: "Query execution was interrupted"}, vedette.Unavailable, "temporarily unable"},
		{errors.Join(&mysql.MySQLError{Number: 9999}, mysql.ErrInvalidConn), vedette.Unavailable, "does not answer"},
		{&mysql.MySQLError{Number: 1406, Message: "Data too long"}, vedette.Invalid, "Data too long"},
	} {
		if err := translateMySQLError(test.err); vedette.KindOf(err) != test.kind || !strings.Contains(err.Error(), test.wantMessage) {
			t.Errorf("%v: got %v of kind %q, want %q of kind %q", test.err, err, vedette.KindOf(err), test.wantMessage, test.kind)
		}
	}
}
