package peer

import (
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/coherence"
	"github.com/vedette-io/vedette/server/peer/peerproto"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/versions"
)

// maxPart bounds the names in one message, in bytes. Larger entries are sent in parts, which mean the same together.
const maxPart = 256 << 10

// parts splits a batch into messages.
type parts struct {
	messages []*peerproto.FollowDown
	bytes    int // in the last message
}

func newParts() *parts { return &parts{messages: []*peerproto.FollowDown{{}}} }

// grow makes room for a number of bytes, and returns the message that has it and whether it is new.
func (p *parts) grow(bytes int) (last *peerproto.FollowDown, isNew bool) {
	last = p.messages[len(p.messages)-1]
	if p.bytes > 0 && p.bytes+bytes > maxPart {
		last.Continues = true
		last = &peerproto.FollowDown{}
		p.messages, p.bytes = append(p.messages, last), 0
		isNew = true
	}
	p.bytes += bytes
	return last, isNew
}

// messagesOf returns the messages of a batch.
func messagesOf(b coherence.Batch) []*peerproto.FollowDown {
	p := newParts()
	for _, e := range b.Entries {
		if e.Effect != nil {
			p.addEffect(e.Effect)
		}
		if len(e.Changes) > 0 {
			p.addChanges(e.Changes)
		}
	}
	for _, a := range b.Ages {
		last, _ := p.grow(len(a.Account) + 24)
		last.Ages = append(last.Ages, &peerproto.AccountAge{Account: []byte(a.Account), FreshMillis: millis(a.Fresh),
			CompleteMillis: millis(a.Complete)})
	}
	last := p.messages[len(p.messages)-1]
	last.Position, last.Pong = b.Position, b.Pong
	last.HasAges = b.Ages != nil
	return p.messages
}

// millis rounds up, so that nothing looks fresher than it is.
func millis(d time.Duration) int64 {
	if d < 0 {
		return -1
	}
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

func (p *parts) addEffect(m *versions.Message) {
	newEffect := func() *peerproto.Effect {
		return &peerproto.Effect{Account: []byte(m.Account), Objects: m.Objects, Clusters: m.Clusters, AccountRow: m.AccountRow,
			Unnamed: m.IsUnnamed, Applications: m.Applications, Namespaces: m.Namespaces}
	}
	size := len(m.Account) + len(m.Applications) + len(m.Namespaces) + 64
	last, _ := p.grow(size)
	e := newEffect()
	last.Entries = append(last.Entries, &peerproto.Entry{Entry: &peerproto.Entry_Effect{Effect: e}})
	for _, c := range m.Changed {
		last, isNew := p.grow(len(c.Namespace) + len(c.Name) + len(c.Application) + 32)
		if isNew {
			p.bytes += size
			e = newEffect()
			last.Entries = append(last.Entries, &peerproto.Entry{Entry: &peerproto.Entry_Effect{Effect: e}})
		}
		e.Changed = append(e.Changed, &peerproto.ChangedObject{KindId: c.KindID, Namespace: []byte(c.Namespace), Name: []byte(c.Name),
			Application: []byte(c.Application)})
	}
}

func (p *parts) addChanges(changes []commit.Change) {
	var current *peerproto.Changes
	var account vedette.AccountName
	for _, c := range changes {
		key := c.Key
		names := len(key.Kind.Group) + len(key.Kind.Name) + len(key.Namespace) + len(key.Name)
		last, isNew := p.grow(len(c.Account) + names + len(c.Version) + 64)
		if isNew || current == nil || c.Account != account {
			account, current = c.Account, &peerproto.Changes{Account: []byte(c.Account)}
			last.Entries = append(last.Entries, &peerproto.Entry{Entry: &peerproto.Entry_Changes{Changes: current}})
		}
		current.Changes = append(current.Changes, &peerproto.Change{Group: []byte(c.Key.Kind.Group), Kind: []byte(c.Key.Kind.Name),
			Namespace: []byte(c.Key.Namespace), Name: []byte(c.Key.Name), Type: string(c.Type), Version: []byte(c.Version)})
	}
}

// errUnknownEntry ends a stream. Whoever ignored such an entry would answer from caches that are old; a new stream begins without any.
var errUnknownEntry = vedette.Errorf(vedette.Invalid, "the other server has changed something that this one does not know: upgrade the older of the two")

func toEntries(messages []*peerproto.Entry) (entries []coherence.Entry, err error) {
	for _, e := range messages {
		switch e := e.GetEntry().(type) {
		case *peerproto.Entry_Effect:
			entries = append(entries, coherence.Entry{Effect: toMessage(e.Effect)})
		case *peerproto.Entry_Changes:
			entries = append(entries, coherence.Entry{Changes: toChanges(e.Changes)})
		default:
			return nil, errUnknownEntry
		}
	}
	return entries, nil
}

func toAges(messages []*peerproto.AccountAge) (ages []coherence.Age) {
	for _, a := range messages {
		ages = append(ages, coherence.Age{Account: vedette.AccountName(a.GetAccount()), Fresh: toAge(a.GetFreshMillis()),
			Complete: toAge(a.GetCompleteMillis())})
	}
	return ages
}

// maxAgeMillis is as much as a Duration holds.
const maxAgeMillis = int64(1<<63-1) / int64(time.Millisecond)

func toAge(millis int64) time.Duration {
	if millis < 0 {
		return -1
	}
	return time.Duration(min(millis, maxAgeMillis)) * time.Millisecond
}

func toMessage(e *peerproto.Effect) *versions.Message {
	m := &versions.Message{Account: vedette.AccountName(e.GetAccount()), Objects: e.GetObjects(), Clusters: e.GetClusters(),
		AccountRow: e.GetAccountRow(), IsUnnamed: e.GetUnnamed(), Applications: e.GetApplications(), Namespaces: e.GetNamespaces()}
	for _, c := range e.GetChanged() {
		m.Changed = append(m.Changed, versions.ChangedObject{KindID: c.GetKindId(), Namespace: string(c.GetNamespace()),
			Name: string(c.GetName()), Account: m.Account, Application: string(c.GetApplication())})
	}
	return m
}

func toChanges(m *peerproto.Changes) []commit.Change {
	changes := make([]commit.Change, 0, len(m.GetChanges()))
	for _, c := range m.GetChanges() {
		changes = append(changes, commit.Change{Account: vedette.AccountName(m.GetAccount()), Type: commit.ChangeType(c.GetType()),
			Version: string(c.GetVersion()), Key: vedette.Key{Kind: vedette.Kind{Group: string(c.GetGroup()), Name: string(c.GetKind())},
				Namespace: string(c.GetNamespace()),
				Name:      string(c.GetName())}})
	}
	return changes
}
