package databases

import (
	"bufio"
	"encoding/binary"
	"io"
	"slices"
	"strconv"
)

// The commands of MySQL's protocol that can fail.
const (
	comQuery   = 0x03
	comPrepare = 0x16
	comExecute = 0x17
)

// readMySQLPacket reads a packet of MySQL: three bytes of length, a sequence number, a body.
func readMySQLPacket(from io.Reader) ([]byte, error) {
	head := make([]byte, 4)
	if _, err := io.ReadFull(from, head); err != nil {
		return nil, err
	}
	size := int(head[0]) | int(head[1])<<8 | int(head[2])<<16
	all := append(head, make([]byte, size)...)
	_, err := io.ReadFull(from, all[4:])
	return all, err
}

func encodeMySQLPacket(sequence byte, body []byte) []byte {
	n := len(body)
	return append([]byte{byte(n), byte(n >> 8), byte(n >> 16), sequence}, body...)
}

// forwardMySQLCommands forwards a client's commands. A command begins with sequence number 0,
// unlike the packets that follow it and those of the handshake.
func (c *injectorConn) forwardMySQLCommands() error {
	from := bufio.NewReader(c.client)
	for {
		p, err := readMySQLPacket(from)
		if err != nil {
			return err
		}
		if p[3] == 0 && len(p) > 4 && (p[4] == comQuery || p[4] == comPrepare || p[4] == comExecute) {
			p, err = c.handleMySQLCommand(p)
		}
		if err == nil {
			_, err = c.server.Write(p)
		}
		if err != nil {
			return err
		}
	}
}

func (c *injectorConn) handleMySQLCommand(p []byte) ([]byte, error) {
	statement := "prepared"
	if p[4] != comExecute {
		statement = string(p[5:min(len(p), 200)])
	}
	code := c.injector.nextError(statement)
	if code == "" {
		return p, nil
	}
	number, err := strconv.ParseUint(code, 10, 16)
	if err != nil {
		return nil, err
	}
	answer := encodeMySQLPacket(1, append(binary.LittleEndian.AppendUint16([]byte{0xff}, uint16(number)), "#HY000injected by the test"...))
	c.mu.Lock()
	defer c.mu.Unlock()
	if isCommand(statement, "commit") && p[4] == comQuery {
		c.replacement = answer
		return encodeMySQLPacket(0, append([]byte{comQuery}, "ROLLBACK"...)), nil
	}
	_, err = c.client.Write(answer)
	if err == nil && slices.Contains([]string{"1053", "1927"}, code) { // the server closes the connection after these
		err = errInjected
	}
	return nil, err
}

// forwardMySQLReplies forwards the server's replies. The reply to ROLLBACK is one packet.
func (c *injectorConn) forwardMySQLReplies() error {
	from := bufio.NewReader(c.server)
	for {
		p, err := readMySQLPacket(from)
		if err != nil {
			return err
		}
		c.mu.Lock()
		if c.replacement != nil {
			p, c.replacement = c.replacement, nil
		}
		_, err = c.client.Write(p)
		c.mu.Unlock()
		if err != nil {
			return err
		}
	}
}
