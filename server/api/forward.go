package api

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
)

const burst = 512

// gather takes what else is waiting, and of several changes of one object only
// the last: the store is read after all of them.
func gather(first store.Change, more <-chan store.Change) []store.Change {
	changes, at := []store.Change{first}, map[place]int{{first.Account, first.Key}: 0}
	for len(changes) < burst {
		select {
		case c, ok := <-more:
			if !ok {
				return changes // the next read finds it closed again
			}
			p := place{c.Account, c.Key}
			n, seen := at[p]
			if !seen {
				at[p] = len(changes)
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

// merge makes one change of two that follow each other. What was added and then
// modified was added.
func merge(old, new store.Change) store.Change {
	if old.Type == store.Added && new.Type == store.Modified {
		new.Type = store.Added
	}
	return new
}

func (s *stream) forward(ctx context.Context, changes []store.Change) error {
	for _, c := range changes {
		if err := s.forwardOne(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

func (s *stream) forwardOne(ctx context.Context, c store.Change) error {
	at := place{c.Account, c.Key}
	if c.Type == store.Deleted {
		return s.remove(at)
	}
	row, release, err := s.read(s.request, c.Account, c.Key)
	if vedette.KindOf(err) == vedette.NotFound {
		return nil // its deletion follows
	}
	if err != nil {
		return err
	}
	defer release()
	if s.shown == nil {
		return s.tell(string(c.Type), &row)
	}
	if !s.chooses(&row) {
		return s.remove(at)
	}
	kind := store.Modified
	if !s.shown[at] {
		kind = store.Added
	}
	s.show(at)
	return s.tell(string(kind), &row)
}

func (s *stream) chooses(row *store.Row) bool {
	return s.selector.Matches(labels.Set(row.Labels)) && (s.filter.Application == "" || s.filter.Application == row.Moniker.App)
}

// remove tells that an object has left what was chosen, if it was in.
func (s *stream) remove(at place) error {
	if s.shown != nil && !s.shown[at] {
		return nil
	}
	delete(s.shown, at)
	return s.out.send(string(store.Deleted), keyView{Account: at.account, Kind: at.key.Kind.String(), Namespace: at.key.Namespace, Name: at.key.Name})
}

// keyView names an object of which nothing else is left.
type keyView struct {
	Account   vedette.AccountName `json:"account"`
	Kind      string              `json:"kind"`
	Namespace string              `json:"namespace,omitempty"`
	Name      string              `json:"name"`
}

func (s *stream) tell(event string, row *store.Row) error {
	if s.table != nil {
		return s.out.send(event, rowOf(row, *s.table, time.Now()))
	}
	if !s.filter.Bodies {
		row.Body = nil
	}
	return s.out.write(event, append(appendObject(nil, row), '\n'))
}
