package infrastructure

import (
	"context"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/read"
)

// objectStore finds objects without their application.
type objectStore interface {
	NamespaceAttributes(ctx context.Context, namespaces []read.NamespaceRef, kind vedette.Kind) ([]read.AttributesRow, error)
	KindAttributes(ctx context.Context, q read.AttributesQuery) ([]read.AttributesRow, error)
}

// Object returns an object of a kind that views show, or nil if there is none.
func (r *Reader) Object(ctx context.Context, account vedette.AccountName, key vedette.Key) (*Object, error) {
	settings, err := r.Settings(ctx)
	if err != nil {
		return nil, err
	}
	list, err := r.cfg.Store.KindAttributes(ctx, read.AttributesQuery{Accounts: []vedette.AccountName{account},
		Kinds: []vedette.Kind{key.Kind}, Namespace: key.Namespace, Name: key.Name})
	if err != nil {
		return nil, err
	}
	rows := Rows{Visibility: settings.Visibility}
	for _, o := range rows.visible(list) {
		if o.Key == key { // an empty namespace selects all
			return o, nil
		}
	}
	return nil, nil
}

// Objects returns all objects of an application, also those that belong to no view.
func (r *Reader) Objects(ctx context.Context, application string) ([]Object, error) {
	var objects []Object
	_, err := r.withMemory(ctx, func(ctx context.Context) (err error) {
		objects, err = r.cfg.Store.ApplicationAttributes(ctx, application, nil)
		return err
	})
	return objects, err
}

// Instance returns a Pod. Its Object is nil if there is none.
func (r *Reader) Instance(ctx context.Context, account vedette.AccountName, namespace, name string) (Instance, error) {
	o, err := r.Object(ctx, account, vedette.Key{Kind: InstanceKinds[0], Namespace: namespace, Name: name})
	if o == nil || err != nil {
		return Instance{}, err
	}
	return newInstance(o), nil
}
