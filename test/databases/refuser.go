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

// Refuser stands before a server and answers some statements in its place, with an
// error of a chosen code. What it answers never reaches the server. A transaction in
// which it answered COMMIT is rolled back, and so is one of PostgreSQL in which it
// answered anything, as that server would do. Its methods may be called from several
// goroutines.
type Refuser struct {
	listener net.Listener
	target   string
	mysql    bool
	work     sync.WaitGroup

	mu      sync.Mutex
	code    string
	every   int
	passed  int // statements since the last that was answered
	refused int
	conns   map[net.Conn]bool // nil once the test has ended
}

// Refuse starts a Refuser before the server of a URL, which ends with the test, and
// returns it with the URL that leads through it. It speaks neither TLS nor
// compression.
func Refuse(t testing.TB, text string) (*Refuser, string) {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &Refuser{listener: listener, target: u.Host, mysql: u.Scheme == "mysql", conns: map[net.Conn]bool{}}
	r.work.Go(r.accept)
	t.Cleanup(r.end)
	u.Host = listener.Addr().String()
	return r, u.String()
}

// Answer makes every n-th statement fail with a code: a SQLSTATE of PostgreSQL, such
// as "40001", or a number of MySQL, such as "1213". ROLLBACK is left alone.
func (r *Refuser) Answer(code string, every int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.code, r.every = code, every
}

// Heal lets everything through.
func (r *Refuser) Heal() { r.Answer("", 0) }

// Refused is how many statements were answered so far.
func (r *Refuser) Refused() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refused
}

// refusal is the code for a statement, or empty where it goes through.
func (r *Refuser) refusal(statement string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.code == "" || is(statement, "rollback") {
		return ""
	}
	if r.passed++; r.passed < r.every {
		return ""
	}
	r.passed = 0
	r.refused++
	return r.code
}

// is compares the first word of a statement.
func is(statement, word string) bool {
	fields := strings.Fields(statement)
	return len(fields) > 0 && strings.EqualFold(strings.TrimRight(fields[0], ";"), word)
}

func (r *Refuser) accept() {
	for {
		client, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.work.Go(func() { r.serve(client) })
	}
}

func (r *Refuser) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", r.target)
	if err != nil {
		return
	}
	defer server.Close()
	if !r.enter(client, server) {
		return
	}
	defer r.leave(client, server)
	c := &refusedConn{refuser: r, client: client, server: server, status: 'I'}
	down, up := c.postgresDown, c.postgresUp
	if r.mysql {
		down, up = c.mysqlDown, c.mysqlUp
	}
	var both sync.WaitGroup
	both.Go(func() { defer client.Close(); _ = down() }) // either way ends with its connections
	_ = up()
	server.Close()
	both.Wait()
}

func (r *Refuser) enter(conns ...net.Conn) bool {
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

func (r *Refuser) leave(conns ...net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range conns {
		delete(r.conns, c)
	}
}

func (r *Refuser) end() {
	_ = r.listener.Close() // its one purpose has ended
	r.mu.Lock()
	for c := range r.conns {
		_ = c.Close()
	}
	r.conns = nil
	r.mu.Unlock()
	r.work.Wait()
}

// refusedConn is one connection through a Refuser. Clients wait for an answer before
// they ask again, so that what is answered here comes in its turn.
type refusedConn struct {
	refuser        *Refuser
	client, server net.Conn

	mu     sync.Mutex
	status byte   // PostgreSQL: I outside of a transaction, T in one, E in one that failed
	failed bool   // PostgreSQL: the client takes the transaction for failed, which the server does not know
	answer []byte // is sent in place of what the server answers next
}

var errRefused = errors.New("the connection ends with the error that was answered")

// message reads one of PostgreSQL: a type, unless it is the first, and a length that
// counts itself.
func message(from io.Reader, first bool) ([]byte, error) {
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
