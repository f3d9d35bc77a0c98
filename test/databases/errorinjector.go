package databases

import (
	"errors"
	"io"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
)

// ErrorInjector is a proxy in front of a server. It answers some statements itself with an error of
// a chosen code, and does not send them to the server. A transaction in which it has answered
// COMMIT is rolled back. As PostgreSQL does, it also rolls back a transaction of PostgreSQL in
// which it has answered any statement. Its methods may be called from several goroutines.
type ErrorInjector struct {
	listener net.Listener
	target   string
	mysql    bool
	work     sync.WaitGroup

	mu        sync.Mutex
	code      string
	every     int
	selects   func(statement string) bool // which statements fail; nil for all
	sinceLast int                         // statements since the last injected error
	injected  int
	conns     map[net.Conn]bool // nil after the test has ended
}

// StartErrorInjector starts an ErrorInjector in front of the server of a URL, and returns it with
// the URL that leads through it. It ends with the test. It supports neither TLS nor compression.
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

// FailEvery makes every n-th statement fail with a code: a SQLSTATE of PostgreSQL, for example
// "40001", or an error number of MySQL, for example "1213". ROLLBACK never fails.
func (r *ErrorInjector) FailEvery(code string, every int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.code = code
	r.every = every
	r.selects = nil
}

// FailCommits makes every n-th COMMIT fail with a code, as a node of a Galera cluster does whose transaction collides with another node's.
func (r *ErrorInjector) FailCommits(code string, every int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.code = code
	r.every = every
	r.selects = func(statement string) bool { return isCommand(statement, "commit") }
}

// FailWrites makes every statement that writes fail with a code, and every COMMIT, as on a full disk or a standby. Reads are
// forwarded.
func (r *ErrorInjector) FailWrites(code string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.code = code
	r.every = 1
	r.selects = isWrite
}

// isWrite reports whether a statement changes data or commits changes.
func isWrite(statement string) bool {
	return slices.ContainsFunc([]string{"commit", "insert", "update", "delete", "replace"}, func(word string) bool { return isCommand(statement, word) })
}

// Reset ends the injection of errors.
func (r *ErrorInjector) Reset() { r.FailEvery("", 0) }

// Injected returns how many statements failed so far.
func (r *ErrorInjector) Injected() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.injected
}

// nextError returns the code for a statement, or "" if the statement is forwarded.
func (r *ErrorInjector) nextError(statement string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.code == "" || isCommand(statement, "rollback") || r.selects != nil && !r.selects(statement) {
		return ""
	}
	r.sinceLast++
	if r.sinceLast < r.every {
		return ""
	}
	r.sinceLast = 0
	r.injected++
	return r.code
}

// isCommand reports whether a statement begins with a word.
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
	both.Go(func() { defer client.Close(); _ = down() }) // if one direction ends, the connections are closed
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
	_ = r.listener.Close() // the proxy is no longer needed
	r.mu.Lock()
	for c := range r.conns {
		_ = c.Close()
	}
	r.conns = nil
	r.mu.Unlock()
	r.work.Wait()
}

// injectorConn is one connection through an ErrorInjector. Clients wait for each reply, so injected
// replies keep the order.
type injectorConn struct {
	injector       *ErrorInjector
	client, server net.Conn

	mu          sync.Mutex
	status      byte   // PostgreSQL: I outside a transaction, T in one, E in a failed one
	failed      bool   // PostgreSQL: the transaction has failed for the client, but the server does not know
	replacement []byte // sent instead of the server's next reply
}

var errInjected = errors.New("the connection ends with the injected error")

// readPostgresMessage reads a message of PostgreSQL: a type, except in the first message, and a
// length that includes itself.
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
