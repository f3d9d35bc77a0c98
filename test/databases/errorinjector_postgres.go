package databases

import (
	"bufio"
	"encoding/binary"
	"slices"
	"strings"
)

// forwardPostgresQueries forwards a client's messages in batches, each of which ends where the
// client waits for a reply.
func (c *injectorConn) forwardPostgresQueries() error {
	from := bufio.NewReader(c.client)
	first, err := readPostgresMessage(from, true)
	if err != nil {
		return err
	}
	if _, err := c.server.Write(first); err != nil {
		return err
	}
	var batch []byte
	statement := ""
	for {
		m, err := readPostgresMessage(from, false)
		if err != nil {
			return err
		}
		batch = append(batch, m...)
		switch m[0] {
		case 'Q':
			statement = cString(m[5:])
		case 'P': // a name, then the statement
			_, rest, _ := strings.Cut(string(m[5:]), "\x00")
			statement, _, _ = strings.Cut(rest, "\x00")
		case 'B':
			statement = "prepared"
		}
		if m[0] != 'Q' && m[0] != 'S' && m[0] != 'H' && m[0] != 'p' && m[0] != 'X' {
			continue
		}
		if statement != "" && (m[0] == 'Q' || m[0] == 'S') {
			batch, err = c.handlePostgresQuery(statement, batch)
		}
		if err == nil {
			_, err = c.server.Write(batch)
		}
		if err != nil {
			return err
		}
		batch, statement = nil, ""
	}
}

// cString returns the bytes before the first zero byte.
func cString(b []byte) string {
	before, _, _ := strings.Cut(string(b), "\x00")
	return before
}

// handlePostgresQuery returns what to send to the server, which is nothing if the client is
// answered here.
func (c *injectorConn) handlePostgresQuery(statement string, batch []byte) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed { // the server continues a transaction that has failed for the client
		switch {
		case isCommand(statement, "rollback"), isCommand(statement, "commit"):
			c.failed = false
			return simpleQuery("rollback"), nil
		}
		_, err := c.client.Write(append(postgresError("25P02", "ERROR"), readyForQuery('E')...))
		return nil, err
	}
	code := c.injector.nextError(statement)
	if code == "" {
		return batch, nil
	}
	if isFatal(code) {
		_, _ = c.client.Write(postgresError(code, "FATAL"))
		return nil, errInjected
	}
	if isCommand(statement, "commit") {
		c.replacement = append(postgresError(code, "ERROR"), readyForQuery('I')...)
		return simpleQuery("rollback"), nil
	}
	status := c.status
	if status != 'I' {
		status, c.failed = 'E', true
	}
	_, err := c.client.Write(append(postgresError(code, "ERROR"), readyForQuery(status)...))
	return nil, err
}

// forwardPostgresReplies forwards the server's replies, except one that is replaced.
func (c *injectorConn) forwardPostgresReplies() error {
	from := bufio.NewReader(c.server)
	for {
		m, err := readPostgresMessage(from, false)
		if err != nil {
			return err
		}
		c.mu.Lock()
		replaced := c.replacement != nil
		if m[0] == 'Z' {
			c.status = m[5]
			if replaced {
				m = c.replacement
				c.replacement = nil
				replaced = false
			}
		}
		if !replaced {
			_, err = c.client.Write(m)
		}
		c.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// isFatal reports whether the server closes the connection after an error with this code.
func isFatal(code string) bool {
	return strings.HasPrefix(code, "08") || slices.Contains([]string{"25P03", "57P01", "57P02", "57P05"}, code)
}

func postgresError(code, severity string) []byte {
	var fields []byte
	for _, f := range []string{"S" + severity, "V" + severity, "C" + code, "Minjected by the test"} {
		fields = append(append(fields, f...), 0)
	}
	return encodePostgresMessage('E', append(fields, 0))
}

func readyForQuery(status byte) []byte { return encodePostgresMessage('Z', []byte{status}) }

func simpleQuery(statement string) []byte {
	return encodePostgresMessage('Q', append([]byte(statement), 0))
}

func encodePostgresMessage(kind byte, body []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(body)+4)), body...)
}
