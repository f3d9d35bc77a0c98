package api

import (
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/read"
)

const maxBatch = 512

// coalesce returns first and all changes that are waiting. It keeps only the last change of
// each object, because the store is read after all of them.
func coalesce(first commit.Change, more <-chan commit.Change) []commit.Change {
	changes, index := []commit.Change{first}, map[objectRef]int{{first.Account, first.Key}: 0}
	for len(changes) < maxBatch {
		select {
		case c, ok := <-more:
			if !ok {
				return changes // the next receive sees the closed channel again
			}
			ref := objectRef{c.Account, c.Key}
			n, seen := index[ref]
			if !seen {
				index[ref] = len(changes)
				changes = append(changes, c)
				continue
			}
			changes[n] = merge(changes[n], c)
		default:
			return changes
		}
	}
	return changes
}

// merge merges two successive changes of an object. Added and then modified is added.
func merge(older, newer commit.Change) commit.Change {
	if older.Type == commit.Added && newer.Type == commit.Modified {
		newer.Type = commit.Added
	}
	return newer
}

func (s *changeStream) forward(changes []commit.Change) error {
	for _, c := range changes {
		if err := s.forwardOne(c); err != nil {
			return err
		}
	}
	return nil
}

func (s *changeStream) forwardOne(c commit.Change) error {
	ref := objectRef{c.Account, c.Key}
	if c.Type == commit.Deleted {
		return s.sendDeleted(ref)
	}
	row, release, err := s.readObject(s.request, c.Account, c.Key)
	if vedette.KindOf(err) == vedette.NotFound {
		return nil // its deletion follows
	}
	if err != nil {
		return err
	}
	defer release()
	if s.matched == nil {
		return s.sendObject(string(c.Type), &row)
	}
	if !s.matches(&row) {
		return s.sendDeleted(ref)
	}
	changeType := commit.Modified
	if !s.matched.contains(ref) {
		changeType = commit.Added
	}
	if err := s.markMatched(ref); err != nil {
		return err
	}
	return s.sendObject(string(changeType), &row)
}

func (s *changeStream) matches(row *read.Row) bool {
	return s.selector.Matches(labels.Set(row.Labels)) && (s.filter.Application == "" || s.filter.Application == row.Moniker.App)
}

// sendDeleted sends that an object no longer matches, if it did before.
func (s *changeStream) sendDeleted(ref objectRef) error {
	if s.matched != nil && !s.matched.remove(ref) {
		return nil
	}
	return s.out.send(string(commit.Deleted),
		keyView{Account: ref.account, Kind: ref.key.Kind.String(), Namespace: ref.key.Namespace, Name: ref.key.Name})
}

// keyView is an object that is deleted or no longer matches.
type keyView struct {
	Account   vedette.AccountName `json:"account"`
	Kind      string              `json:"kind"`
	Namespace string              `json:"namespace,omitempty"`
	Name      string              `json:"name"`
}

func (s *changeStream) sendObject(event string, row *read.Row) error {
	if s.table != nil {
		return s.out.send(event, newRowView(row, *s.table, time.Now(), s.include))
	}
	if !s.filter.Bodies {
		row.Body = nil
	}
	return s.out.write(event, append(appendObject(nil, row), '\n'))
}
