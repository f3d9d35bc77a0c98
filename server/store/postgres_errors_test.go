package store

import (
	"io"
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/vedette-io/vedette"
)

// servePostgres accepts connections as a PostgreSQL server without TLS, and rejects each user. Without
// an answer it closes the connection instead.
func servePostgres(t *testing.T, answer string) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			var request [8]byte // the length, and the code of a request for TLS or of the protocol
			if _, err := io.ReadFull(conn, request[:]); err == nil && request[7] == 47 {
				_, _ = io.WriteString(conn, "N")
			} else if err == nil {
				_, _ = io.WriteString(conn, answer)
			}
			conn.Close()
		}
	}()
	return listener.Addr().String()
}

// TestConnectErrorsAreOneLine checks that a failed connection is described in one line, without
// repetitions, and that the first attempt, which is one with TLS, does not hide the reason.
func TestConnectErrorsAreOneLine(t *testing.T) {
	rejects := servePostgres(t, "E\x00\x00\x00\x26SFATAL\x00C28P01\x00Mpassword is wrong\x00\x00")
	for _, tt := range []struct {
		name, url  string
		kind       vedette.ErrorKind
		want, once string
	}{
		{"a wrong password", "postgres://u:p@" + rejects + "/d", vedette.Invalid, "connect as user u to database d: ", "password is wrong"},
		{"no TLS", "postgres://u:p@" + rejects + "/d?sslmode=require", vedette.Invalid, "set ssl=on", noPostgresTLS},
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
