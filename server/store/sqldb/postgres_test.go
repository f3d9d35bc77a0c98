package sqldb

import (
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vedette-io/vedette/test/tcpserver"
)

func TestPostgresConnectTimeout(t *testing.T) {
	for query, want := range map[string]time.Duration{
		"": dialTimeout, "?connect_timeout=0": dialTimeout, "?connect_timeout=3": 3 * time.Second, "?connect_timeout=60": dialTimeout,
	} {
		config, err := postgresConfig("postgres://vedette:p@127.0.0.1:1/vedette" + query)
		if err != nil {
			t.Fatal(err)
		}
		if got := config.ConnConfig.ConnectTimeout; got != want {
			t.Errorf("%q: got a timeout of %v for connections, want %v", query, got, want)
		}
	}
}

// A server that accepts a connection and never answers holds up whoever waits for it no longer than the timeout.
func TestPostgresThatDoesNotAnswerConnections(t *testing.T) {
	address := tcpserver.New(t, func(conn net.Conn) {
		_, _ = conn.Read(make([]byte, 1024))
		<-t.Context().Done()
	})
	config, err := postgresConfig("postgres://vedette:p@" + address + "/vedette?sslmode=disable&connect_timeout=1")
	if err != nil {
		t.Fatal(err)
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if _, err := pool.Acquire(t.Context()); err == nil || t.Context().Err() != nil {
		t.Errorf("got %v, want an error before the context ends", err)
	}
}
