package infrastructure

import (
	"context"
	"maps"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/read"
)

// ServerGroup returns a server group, or nil if there is none. As in Clouddriver, every object
// of LogicalKinds can be shown as one.
func (r *Reader) ServerGroup(ctx context.Context, account vedette.AccountName, key vedette.Key) (*ServerGroup, error) {
	groups, err := r.ServerGroups(ctx, []read.ObjectRef{{Account: account, Key: key}})
	if err != nil {
		return nil, err
	}
	return groups[0], nil
}

// ServerGroups returns a server group for each of a few hundred names, or nil if there is none. The
// number of statements does not depend on the number of names.
func (r *Reader) ServerGroups(ctx context.Context, names []read.ObjectRef) ([]*ServerGroup, error) {
	var groups []*ServerGroup
	_, err := r.withMemory(ctx, func(ctx context.Context) (err error) {
		groups, err = r.readServerGroups(ctx, names)
		return err
	})
	return groups, err
}

func (r *Reader) readServerGroups(ctx context.Context, names []read.ObjectRef) ([]*ServerGroup, error) {
	settings, err := r.Settings(ctx)
	if err != nil {
		return nil, err
	}
	rows := Rows{Visibility: settings.Visibility}
	objects, err := r.readObjects(ctx, names)
	if err != nil {
		return nil, err
	}
	groups := make([]*ServerGroup, len(names))
	found := map[objectKey]*ServerGroup{}
	for i, name := range names {
		key := objectKey{name.Account, name.Key}
		if o := objects[key]; found[key] == nil && o != nil && rows.Shows(o) {
			found[key] = &ServerGroup{Object: o, Manager: managerOf(o)}
		}
		groups[i] = found[key]
	}
	return groups, r.relate(ctx, slices.Collect(maps.Values(found)), &rows)
}

// relate adds Pods and Services to server groups of any applications.
func (r *Reader) relate(ctx context.Context, groups []*ServerGroup, rows *Rows) (err error) {
	if len(groups) == 0 {
		return nil
	}
	var owners []read.OwnerRef
	selected := map[read.NamespaceRef]bool{}
	for _, g := range groups {
		owners = append(owners, read.OwnerRef{Account: g.Account, UID: g.UID})
		if slices.Contains(selectedKinds, g.Kind) {
			selected[read.NamespaceRef{Account: g.Account, Name: g.Namespace}] = true
		}
	}
	rows.Pods, err = r.cfg.Store.AttributesOwnedBy(ctx, owners, InstanceKinds)
	if err != nil {
		return err
	}
	if len(selected) > 0 {
		rows.Services, err = r.cfg.Store.NamespaceAttributes(ctx, slices.Collect(maps.Keys(selected)), service)
		if err != nil {
			return err
		}
	}
	addInstances(groups, rows.visible(rows.Pods))
	addServices(groups, newServiceIndex(rows.visible(rows.Services)))
	return nil
}
