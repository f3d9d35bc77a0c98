package infrastructure

import (
	"reflect"
	"slices"

	"github.com/vedette-io/vedette/server/store/read"
)

// changeEffect is what changed objects mean for an application.
type changeEffect int

const (
	changesNothing changeEffect = iota
	changesRows
	// changesRelations means that other objects may belong to the application than before.
	changesRelations
)

// after returns the rows after objects have changed, which are nil if they are gone.
func (r *Rows) after(changed map[objectKey]*Object, name string) (*Rows, changeEffect) {
	c := rowChange{changed: changed, handled: map[objectKey]bool{}}
	next := &Rows{Visibility: r.Visibility}
	next.own = c.replace(r.own)
	next.replicaSets = c.replace(r.replicaSets)
	next.services = c.replace(r.services)
	next.pods = c.replacePods(r.pods, ownersAmong(next.own))
	if c.changesRelations || c.relatesOthers(next.own, name) {
		return nil, changesRelations
	}
	if !c.differs && len(c.handled) == len(changed) {
		return r, changesNothing
	}
	return next, changesRows
}

// rowChange replaces rows by those that have changed.
type rowChange struct {
	changed          map[objectKey]*Object
	handled          map[objectKey]bool // those of changed that are among the rows
	differs          bool               // any row has changed
	changesRelations bool
}

// replace returns a list with the changed rows in place of those before. If one is gone, or has
// another owner or application, the relations of other objects may have changed.
func (c *rowChange) replace(list []*Object) []*Object {
	next := slices.Clone(list)
	for i, o := range next {
		row, isChanged := c.changed[keyOf(o)]
		if !isChanged {
			continue
		}
		if row == nil || row.UID != o.UID || row.Owner != o.Owner || row.Moniker.App != o.Moniker.App {
			c.changesRelations = true
			return nil
		}
		next[i] = c.newer(o, row)
	}
	return next
}

// newer returns the changed row, or the one before if it is the same.
func (c *rowChange) newer(before, after *Object) *Object {
	c.handled[keyOf(before)] = true
	if reflect.DeepEqual(before, after) {
		return before
	}
	c.differs = true
	return after
}

// replacePods is replace for Pods, which come and go. Those that belong to the owners are added.
func (c *rowChange) replacePods(list []*Object, owners map[read.OwnerRef]bool) []*Object {
	isOwned := func(o *Object) bool {
		return o.Owner.UID != "" && owners[read.OwnerRef{Account: o.Account, UID: o.Owner.UID}]
	}
	next := make([]*Object, 0, len(list)+len(c.changed))
	for _, o := range list {
		row, isChanged := c.changed[keyOf(o)]
		switch {
		case !isChanged:
			next = append(next, o)
		case row != nil && isOwned(row):
			next = append(next, c.newer(o, row))
		default:
			c.handled[keyOf(o)], c.differs = true, true
		}
	}
	for key, row := range c.changed {
		if row != nil && row.Kind == InstanceKinds[0] && !c.handled[key] && isOwned(row) {
			c.handled[key], c.differs = true, true
			next = append(next, row)
		}
	}
	return next
}

// ownersAmong identifies the server groups, which own Pods.
func ownersAmong(own []*Object) map[read.OwnerRef]bool {
	owners := make(map[read.OwnerRef]bool, len(own))
	for _, o := range own {
		if slices.Contains(ServerGroupKinds, o.Kind) {
			owners[read.OwnerRef{Account: o.Account, UID: o.UID}] = true
		}
	}
	return owners
}

// relatesOthers reports whether changed objects that are not among the rows belong there now.
func (c *rowChange) relatesOthers(own []*Object, name string) bool {
	managers := map[read.OwnerRef]bool{}
	for _, o := range own {
		if slices.Contains(ManagerKinds, o.Kind) {
			managers[read.OwnerRef{Account: o.Account, UID: o.UID}] = true
		}
	}
	for key, row := range c.changed {
		if row == nil || c.handled[key] || row.Kind == InstanceKinds[0] {
			continue
		}
		if row.Moniker.App == name || row.Kind == service || managers[read.OwnerRef{Account: row.Account, UID: row.Owner.UID}] {
			return true
		}
	}
	return false
}
