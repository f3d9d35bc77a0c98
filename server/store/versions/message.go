package versions

import (
	"encoding/binary"

	"github.com/vedette-io/vedette"
)

// Message is an Effect for other servers. Its objects name ids of kinds, which all servers of a database share.
type Message struct {
	Account               vedette.AccountName
	Changed               []ChangedObject
	Objects, Clusters     bool
	AccountRow, IsUnnamed bool
	// Applications and Namespaces are the stripes that have changed besides those of Changed, as little-endian words; empty for none.
	Applications, Namespaces []byte
}

// maxMessageObjects bounds the objects of a message. Of larger effects only the stripes are told, and caches that need the objects read
// again.
const maxMessageObjects = 10_000

// Message returns an effect for other servers. It shares the objects with the effect.
func (e *Effect) Message() Message {
	m := Message{Account: e.Account, Changed: e.Changed, Objects: e.objects, Clusters: e.Clusters, AccountRow: e.accountRow,
		IsUnnamed: e.unnamed}
	if len(m.Changed) > maxMessageObjects {
		m.IsUnnamed = true
	}
	if m.IsUnnamed {
		m.Changed = nil
		m.Applications, m.Namespaces = e.applications.encode(), e.namespaces.encode()
	}
	return m
}

// Effect returns the effect that a message of another server tells. Stripes beyond those that there are, are left out.
func (m *Message) Effect() *Effect {
	e := &Effect{Account: m.Account, objects: m.Objects, Clusters: m.Clusters, accountRow: m.AccountRow, unnamed: m.IsUnnamed}
	e.applications.decode(m.Applications)
	e.namespaces.decode(m.Namespaces)
	for _, c := range m.Changed {
		e.applications.add(applicationStripe(c.Application))
		e.namespaces.add(namespaceStripe(c.Account, c.Namespace))
	}
	e.Changed = m.Changed
	return e
}

const wordBytes = 8

func (s *stripes) encode() []byte {
	if *s == (stripes{}) {
		return nil
	}
	b := make([]byte, 0, len(s)*wordBytes)
	for _, word := range s {
		b = binary.LittleEndian.AppendUint64(b, word)
	}
	return b
}

func (s *stripes) decode(b []byte) {
	for i := range s {
		if len(b) < wordBytes {
			return
		}
		s[i] = binary.LittleEndian.Uint64(b)
		b = b[wordBytes:]
	}
}
