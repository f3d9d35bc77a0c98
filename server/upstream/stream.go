package upstream

import (
	"context"
	"encoding/binary"
	"io"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/vedette-io/vedette/internal/etag"
	"github.com/vedette-io/vedette/server/upstream/merging"
	"github.com/vedette-io/vedette/server/upstream/spool"
)

// accountNameKey is the member that names the account in lists of accounts. Most objects have merging.AccountKey.
const accountNameKey = "name"

// streamRule says how two lists of objects become one: this server's elements, then the upstream Clouddriver's. Answers of
// any size pass through in pieces.
type streamRule struct {
	account    string // the member that names the account; empty if elements have none
	byAccount  bool   // the answers are objects whose members are named after accounts
	sortByName bool   // both lists are sorted by the lower-cased name, as Clouddriver does, and so is the merged one
	// newestFirst is the member by whose number both lists are sorted, the largest first; empty if they are not.
	newestFirst string
}

func (rule *streamRule) begin() jsontext.Kind {
	if rule.byAccount {
		return '{'
	}
	return '['
}

// maxCompression is how many times as large as the memory for merged answers one of them may be. Nobody reads more than that.
const maxCompression = 8

// keep writes the elements of a document that belong to the answer to a spool, with commas between them, and returns how
// many the document has. Elements without an account are kept.
func (m *merge) keep(document io.Reader, rule *streamRule, to *spool.Spool, keeps func(account string) bool) (elements int, err error) {
	read := &window{ctx: m.ctx, body: document, grant: m.grant, limit: m.client.MergeBytes * maxCompression}
	defer read.release()
	members, seen := &merging.Merge{}, &elementSet{ctx: m.ctx, grant: m.grant, digests: map[uint64]struct{}{}}
	err = merging.Scan(read, rule.begin(), func(name string, value []byte) error {
		defer read.next()
		if elements++; elements > merging.MaxElements {
			return merging.ErrManyElements
		}
		if rule.byAccount {
			if err := read.payName(name); err != nil {
				return err
			}
		}
		account, isNamed := name, rule.byAccount
		if rule.account != "" {
			var err error
			if account, isNamed, err = members.Account(value, rule.account); err != nil {
				return err
			}
		}
		if isNamed && !keeps(account) {
			return nil
		}
		if isNew, err := seen.add(rule, account, value); !isNew || err != nil {
			return err
		}
		return writeElement(to, rule, name, value)
	})
	m.grant.Shrink(seen.paid)
	return elements, err
}

// elementSet knows the elements of one part of an answer, so that none is in it twice.
type elementSet struct {
	ctx     context.Context //nolint:containedctx // that of one request
	grant   *spool.Grant
	digests map[uint64]struct{}
	paid    int64
}

// elementBytes is what one digest takes in a map that grows by doubling, and elementStep for how many a set pays at once.
const (
	elementBytes = 40
	elementStep  = 1024
)

// add adds an element, and reports false if it is there already: with the same name in a list of accounts, or with the same bytes in
// another list. Objects have their members once already.
func (e *elementSet) add(rule *streamRule, account string, value []byte) (isNew bool, err error) {
	if rule.byAccount {
		return true, nil
	}
	digest := xxhash.Sum64(value)
	if rule.account == accountNameKey {
		digest = xxhash.Sum64String(account)
	}
	if _, ok := e.digests[digest]; ok {
		return false, nil
	}
	if len(e.digests)%elementStep == elementStep-1 {
		if err := e.grant.Grow(e.ctx, elementStep*elementBytes); err != nil {
			return false, err
		}
		e.paid += elementStep * elementBytes
	}
	e.digests[digest] = struct{}{}
	return true, nil
}

// writeElement writes one element, with a comma if it is not the first one.
func writeElement(to *spool.Spool, rule *streamRule, name string, value []byte) error {
	var head []byte
	if to.Size() > 0 {
		head = append(head, ',')
	}
	if rule.byAccount {
		var err error
		if head, err = jsontext.AppendQuote(head, name); err != nil {
			return err
		}
		head = append(head, ':')
	}
	if _, err := to.Write(head); err != nil {
		return err
	}
	_, err := to.Write(value)
	return err
}

// joinStreams returns the function that sends both parts.
func (m *merge) joinStreams(local localPart, theirs part) (send func() error, err error) {
	rule, kept := m.found.stream, spool.New(m.ctx, m.grant)
	if theirs.document != nil {
		elements, err := m.keep(theirs.document, rule, kept, m.keepsTheirs)
		if err != nil {
			return nil, err
		}
		m.noteEmpty(elements == 0)
	} else if theirs.reason == "" {
		m.noteEmpty(true)
	}
	return func() error {
		if local.isMissing() && theirs.document == nil {
			local.sendMissing()
			return nil
		}
		var tag [16]byte
		binary.LittleEndian.PutUint64(tag[:8], local.kept.Sum())
		binary.LittleEndian.PutUint64(tag[8:], kept.Sum())
		if etag.Begin(m.w, m.r, xxhash.Sum64(tag[:])) {
			return writeStreams(m.w, rule, local.kept, kept)
		}
		return nil
	}, nil
}

func (m *merge) keepsTheirs(account string) bool { return !m.ours.Hides(account) }

// noteEmpty notes that the upstream Clouddriver has no such objects, or that it has some.
func (m *merge) noteEmpty(isEmpty bool) {
	if m.found.subject == oneObjectList {
		m.answers.index.setEmpty(m.requestOfCaller(), isEmpty)
	}
}

// writeStreams writes two lists of elements as one document.
func writeStreams(w io.Writer, rule *streamRule, local, theirs *spool.Spool) error {
	begin, end := "[", "]\n"
	if rule.byAccount {
		begin, end = "{", "}\n"
	}
	out := &listWriter{to: w}
	out.write([]byte(begin))
	switch {
	case (rule.sortByName || rule.newestFirst != "") && local.Size() > 0 && theirs.Size() > 0:
		if err := out.interleave(rule, local, theirs); err != nil {
			return err
		}
	default:
		out.copy(local)
		if local.Size() > 0 && theirs.Size() > 0 {
			out.write([]byte(","))
		}
		out.copy(theirs)
	}
	out.write([]byte(end))
	return nil // the client may have disconnected
}

// listWriter writes to a client until that has disconnected.
type listWriter struct {
	to  io.Writer
	err error
}

func (l *listWriter) write(p []byte) {
	if l.err == nil {
		_, l.err = l.to.Write(p)
	}
}

func (l *listWriter) copy(from *spool.Spool) {
	if l.err == nil {
		_, l.err = from.WriteTo(l.to)
	}
}

// interleave writes two lists that are sorted, this server's elements first among equal ones.
func (l *listWriter) interleave(rule *streamRule, local, theirs *spool.Spool) error {
	lists := [2]*sortedList{newSortedList(rule, local), newSortedList(rule, theirs)}
	for _, list := range lists {
		if err := list.advance(); err != nil {
			return err
		}
	}
	for isFirst := true; l.err == nil; isFirst = false {
		next := lists[0]
		if next.value == nil || lists[1].value != nil && lists[1].isBefore(next) {
			next = lists[1]
		}
		if next.value == nil {
			return nil
		}
		if !isFirst {
			l.write([]byte(","))
		}
		l.write(next.value)
		if err := next.advance(); err != nil {
			return err
		}
	}
	return nil
}

// sortedList reads the elements of a spool with what they are sorted by.
type sortedList struct {
	rule    *streamRule
	decoder *jsontext.Decoder
	members merging.Merge
	name    string // lower-cased
	number  float64
	value   []byte // nil at the end; valid until the next one is read
}

func newSortedList(rule *streamRule, from *spool.Spool) *sortedList {
	list := io.MultiReader(strings.NewReader("["), from.Reader(), strings.NewReader("]"))
	return &sortedList{rule: rule, decoder: jsontext.NewDecoder(list, merging.DecoderOptions)}
}

// isBefore reports whether the element of a list comes before that of another one.
func (n *sortedList) isBefore(other *sortedList) bool {
	if n.rule.newestFirst != "" {
		return n.number > other.number
	}
	return n.name < other.name
}

// advance reads the next element.
func (n *sortedList) advance() (err error) {
	if n.decoder.StackDepth() == 0 {
		if err := merging.OpenJSON(n.decoder, '['); err != nil {
			return err
		}
	}
	if n.decoder.PeekKind() == ']' {
		n.value = nil
		return nil
	}
	if n.value, err = n.decoder.ReadValue(); err != nil {
		return err
	}
	if n.rule.newestFirst != "" {
		number, err := n.members.Member(n.value, n.rule.newestFirst)
		n.number, _ = strconv.ParseFloat(string(number), 64) // what is not a number is the oldest
		return err
	}
	name, err := n.members.StringMember(n.value, "name")
	n.name = strings.ToLower(name)
	return err
}
