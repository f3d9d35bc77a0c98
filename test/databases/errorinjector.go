package databases

import (
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// ErrorInjector stands before a server and answers some statements in its place, with an
// error of a chosen code. What it answers never reaches the server. A transaction in
// which it answered COMMIT is rolled back, and so is one of PostgreSQL in which it
// answered anything, as that server would do. Its methods may be called from several
// goroutines.
type ErrorInjector struct {
	listener net.Listener
	target   string
	mysql    bool
	work     sync.WaitGroup

	mu        sync.Mutex
	code      string
	every     int
	sinceLast int // statements since the last that was answered
	injected  int
	conns     map[net.Conn]bool // nil once the test has ended
}

// StartErrorInjector starts a Refuser before the server of a URL, which ends with the test, and
// returns it with the URL that leads through it. It speaks neither TLS nor
// compression.
func StartErrorInjector(t testing.TB, text string) (*ErrorInjector, string) {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &ErrorInjector{listener: listener, target: u.Host, mysql: u.Scheme == "mysql", conns: map[net.Conn]bool{}}
	r.work.Go(r.accept)
	t.Cleanup(r.close)
	u.Host = listener.Addr().String()
	return r, u.String()
}

// FailEvery makes every n-th statement fail with a code: a SQLSTATE of PostgreSQL, such
// as "40001", or a number of MySQL, such as "1213". ROLLBACK is left alone.
func (r *ErrorInjector) FailEvery(code string, every int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.code, r.every = code, every
}

// Reset lets everything through.
func (r *ErrorInjector) Reset() { r.FailEvery("", 0) }

// Injected is how many statements were answered so far.
func (r *ErrorInjector) Injected() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.injected
}

// nextError is the code for a statement, or empty where it goes through.
func (r *ErrorInjector) nextError(statement string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.code == "" || isCommand(statement, "rollback") {
		return ""
	}
	if r.sinceLast++; r.sinceLast < r.every {
		return ""
	}
	r.sinceLast = 0
	r.injected++
	return r.code
}

// isCommand compares the first word of a statement.
func isCommand(statement, word string) bool {
	fields := strings.Fields(statement)
	return len(fields) > 0 && strings.EqualFold(strings.TrimRight(fields[0], ";"), word)
}

func (r *ErrorInjector) accept() {
	for {
		client, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.work.Go(func() { r.serve(client) })
	}
}

func (r *ErrorInjector) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", r.target)
	if err != nil {
		return
	}
	defer server.Close()
	if !r.addConns(client, server) {
		return
	}
	defer r.removeConns(client, server)
	c := &injectorConn{injector: r, client: client, server: server, status: 'I'}
	down, up := c.forwardPostgresReplies, c.forwardPostgresQueries
	if r.mysql {
		down, up = c.forwardMySQLReplies, c.forwardMySQLCommands
	}
	var both sync.WaitGroup
	both.Go(func() { defer client.Close(); _ = down() }) // either way ends with its connections
	_ = up()
	server.Close()
	both.Wait()
}

func (r *ErrorInjector) addConns(conns ...net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range conns {
		if r.conns == nil {
			return false
		}
		r.conns[c] = true
	}
	return true
}

func (r *ErrorInjector) removeConns(conns ...net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range conns {
		delete(r.conns, c)
	}
}

func (r *ErrorInjector) close() {
	_ = r.listener.Close() // its one purpose has ended
	r.mu.Lock()
	for c := range r.conns {
		_ = c.Close()
	}
	r.conns = nil
	r.mu.Unlock()
	r.work.Wait()
}

// injectorConn is one connection through a Refuser. Clients wait for an answer before
// they ask again, so that what is answered here comes in its turn.
type injectorConn struct {
	injector       *ErrorInjector
	client, server net.Conn

	mu          sync.Mutex
	status      byte   // PostgreSQL: I outside of a transaction, T in one, E in one that failed
	failed      bool   // PostgreSQL: the client takes the transaction for failed, which the server does not know
	replacement []byte // is sent in place of what the server answers next
}

var errInjected = errors.New("the connection ends with the error that was answered")

// readPostgresMessage reads one of PostgreSQL: a type, unless it is the first, and a length that
// counts itself.
func readPostgresMessage(from io.Reader, first bool) ([]byte, error) {
	head := make([]byte, 5)
	if first {
		head = head[:4]
	}
	if _, err := io.ReadFull(from, head); err != nil {
		return nil, err
	}
	size := head[len(head)-4:]
	n := int(size[0])<<24 | int(size[1])<<16 | int(size[2])<<8 | int(size[3])
	if n < 4 || n > 1<<30 {
		return nil, errors.New("not a message of PostgreSQL")
	}
	all := append(head, make([]byte, n-4)...)
	_, err := io.ReadFull(from, all[len(head):])
	return all, err
}
