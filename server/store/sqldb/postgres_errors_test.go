package sqldb

import (
	"crypto/tls"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/keypair/keypairtest"
	"github.com/vedette-io/vedette/test/tcpserver"
)

// rejection is a message of PostgreSQL about a wrong password.
const rejection = "E\x00\x00\x00\x26SFATAL\x00C28P01\x00Mpassword is wrong\x00\x00"

// servePostgres accepts connections as a PostgreSQL server that rejects each user. Without a
// configuration of TLS it offers none.
func servePostgres(t *testing.T, secure *tls.Config) (address string) {
	t.Helper()
	return tcpserver.New(t, func(conn net.Conn) { answerPostgres(conn, secure) })
}

// answerPostgres answers the first message. The client notices when the answer cannot be sent.
func answerPostgres(conn net.Conn, secure *tls.Config) {
	var request [8]byte // the length, and the code of a request for TLS or of the protocol
	_, err := io.ReadFull(conn, request[:])
	switch wantsTLS := request[7] == 47; {
	case err != nil:
	case wantsTLS && secure == nil:
		_, _ = io.WriteString(conn, "N")
	case wantsTLS:
		_, _ = io.WriteString(conn, "S")
		_ = tls.Server(conn, secure).Handshake()
	default:
		_, _ = io.WriteString(conn, rejection)
	}
}

// TestConnectErrorsAreOneLine checks that a failed connection is described in one line, without
// repetitions, and that the first attempt, which is one with TLS, does not hide the reason.
func TestConnectErrorsAreOneLine(t *testing.T) {
	rejects := servePostgres(t, nil)
	pair := keypairtest.New(t).Issue("server")
	certificate, err := tls.LoadX509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	foreign := servePostgres(t, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12})
	verify := "/d?sslrootcert=" + keypairtest.New(t).File + "&sslmode="
	for _, tt := range []struct {
		name, url  string
		kind       vedette.ErrorKind
		want, once string
	}{
		{"a wrong password", "postgres://u:p@" + rejects + "/d", vedette.Invalid, "connect as user u to database d: ", "password is wrong"},
		{"no TLS", "postgres://u:p@" + rejects + "/d?sslmode=require", vedette.Invalid, "set ssl=on", noPostgresTLS},
		{"a foreign certificate", "postgres://u:p@" + foreign + verify + "verify-ca", vedette.Invalid, "is not trusted: name its authority", "signed by unknown authority"},
		{"a foreign certificate or name", "postgres://u:p@" + foreign + verify + "verify-full", vedette.Invalid, "is not trusted: name its authority", "signed by unknown authority"},
		{"nobody listens", "postgres://u:p@127.0.0.1:1/d", vedette.Unavailable, "does not answer", "connection refused"},
	} {
		_, err := pgconn.Connect(t.Context(), tt.url)
		if err == nil {
			t.Fatalf("%s: got no error", tt.name)
		}
		err = translatePostgresError(err)
		text := err.Error()
		if vedette.KindOf(err) != tt.kind || !strings.Contains(text, tt.want) || strings.Count(text, tt.once) != 1 || strings.Contains(text, "\n") {
			t.Errorf("%s: got %s error %q, want %q, and %q once", tt.name, vedette.KindOf(err), text, tt.want, tt.once)
		}
	}
}
