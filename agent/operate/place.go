package operate

import (
	"context"
	"net/http"
	"strings"

	"github.com/vedette-io/vedette"
)

// secretKind is asked for as metadata only, whatever is done to it.
var secretKind = vedette.Kind{Name: "Secret"}

// place is where an object, or a list of them, is found.
type place struct {
	vedette.Resource
	namespace string // empty for cluster-scoped kinds, and for all namespaces
	name      string // empty for a list
}

// find resolves a target to the place of one object.
func (o *Operator) find(ctx context.Context, t vedette.Target) (place, error) {
	if err := named(t.Name); err != nil {
		return place{}, err
	}
	p, err := o.findAll(ctx, t)
	if p.Namespaced && p.namespace == "" {
		p.namespace = "default"
	}
	return p, err
}

// findAll resolves a target to a place, whose name may be empty.
func (o *Operator) findAll(ctx context.Context, t vedette.Target) (place, error) {
	if t.Namespace != "" && !plain(t.Namespace) {
		return place{}, vedette.Errorf(vedette.Invalid, "%q is no name of a namespace", t.Namespace)
	}
	r, err := o.resolve(ctx, t)
	if err != nil {
		return place{}, err
	}
	p := place{Resource: r, name: t.Name}
	if r.Namespaced {
		p.namespace = t.Namespace
	}
	return p, nil
}

// named refuses what would lead to another path than that of an object.
func named(name string) error {
	if name == "" {
		return vedette.Errorf(vedette.Invalid, "the operation names no object")
	}
	if !plain(name) {
		return vedette.Errorf(vedette.Invalid, "%q is no name of an object", name)
	}
	return nil
}

func plain(name string) bool {
	return name != "." && name != ".." && !strings.ContainsAny(name, "/%?#\x00\r\n")
}

// path is the path of the object, or of the list where there is no name.
func (p place) path() string {
	path := versionPath(p.APIVersion())
	if p.namespace != "" {
		path += "/namespaces/" + p.namespace
	}
	path += "/" + p.Plural
	if p.name != "" {
		path += "/" + p.name
	}
	return path
}

func (p place) list() place { p.name = ""; return p }

func (p place) secret() bool { return p.Kind == secretKind }

// accept is the form in which an object of the place is asked for.
func (p place) accept() string {
	if p.secret() {
		return metadataOnly
	}
	return typeJSON
}

func (p place) key() vedette.Key {
	return vedette.Key{Kind: p.Kind, Namespace: p.namespace, Name: p.name}
}

// do makes a request for one object of the place, or for its list.
func (o *Operator) do(ctx context.Context, p place, c call) ([]byte, int, error) {
	c.path = p.path() + c.path
	if c.accept == "" {
		c.accept = p.accept()
	}
	body, status, err := o.send(ctx, c)
	if r := refusalOf(err); r != nil {
		r.conceal(p)
	}
	if p.secret() && warned(ctx) {
		withholdWarnings(ctx)
	}
	if status == http.StatusNotFound && kindless(err) {
		o.forget()
	}
	return body, status, err
}

// kindless reports whether a 404 names no object: then the kind itself is gone.
func kindless(err error) bool {
	return strings.HasPrefix(err.Error(), "the server could not find the requested resource") || strings.HasPrefix(err.Error(), "404 page not found")
}
