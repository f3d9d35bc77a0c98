package apistub

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/vedette-io/vedette"
)

// request is a request for objects of one resource.
type request struct {
	vedette.Resource
	namespace    string   // "" for all
	path         []string // after the resource: name, subresource
	metadataOnly bool
	query        url.Values
	selector     selector
}

func (c *Cluster) serveObjects(w http.ResponseWriter, r *http.Request, q request) {
	var err error
	if q.query, err = url.ParseQuery(r.URL.RawQuery); err == nil {
		q.selector, err = parseSelector(q.namespace, q.query)
	}
	q.metadataOnly = strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata")
	switch {
	case err != nil:
		writeStatus(w, http.StatusBadRequest, "BadRequest", err.Error())
	case len(q.path) == 1:
		c.get(w, q)
	case len(q.path) > 1: // logs and other subresources were not recorded
		writeNotFound(w)
	case q.query.Get("watch") == "true" || q.query.Get("watch") == "1":
		c.watch(w, r, q)
	default:
		c.list(w, q)
	}
}

func parseSelector(namespace string, query url.Values) (s selector, err error) {
	s.namespace = namespace
	s.labels, err = labels.Parse(query.Get("labelSelector"))
	if err == nil {
		s.fields, err = fields.ParseSelector(query.Get("fieldSelector"))
	}
	return s, err
}

// encode returns an object in the form that the request asks for.
func (q request) encode(o *object) []byte {
	if q.metadataOnly {
		return o.metadata
	}
	return o.raw
}

func (c *Cluster) selected(q request) []*object {
	return slices.DeleteFunc(slices.Clone(c.objects[q.Kind]), func(o *object) bool { return !q.selector.matches(o) })
}

func (c *Cluster) get(w http.ResponseWriter, q request) {
	for _, o := range c.objects[q.Kind] {
		if o.namespace == q.namespace && o.name == q.path[0] {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(q.encode(o))
			return
		}
	}
	name := q.Plural
	if q.Kind.Group != "" {
		name += "." + q.Kind.Group
	}
	writeStatus(w, http.StatusNotFound, "NotFound", fmt.Sprintf("%s %q not found", name, q.path[0]))
}

// list serves a page. The continue token is the number of the next object, because objects never
// change. Items have no kind and apiVersion, like those of API servers, unless they are metadata.
func (c *Cluster) list(w http.ResponseWriter, q request) {
	limit, _ := strconv.Atoi(q.query.Get("limit")) // 0 if missing, which means all
	from, err := strconv.Atoi(q.query.Get("continue"))
	objects := c.selected(q)
	if q.query.Has("continue") && err != nil || from < 0 || from > len(objects) {
		writeStatus(w, http.StatusBadRequest, "BadRequest", "continue key is not valid")
		return
	}
	end := len(objects)
	if limit > 0 {
		end = min(end, from+limit)
	}
	kind, apiVersion := q.Kind.Name+"List", q.APIVersion()
	if q.metadataOnly {
		kind, apiVersion = "PartialObjectMetadataList", "meta.k8s.io/v1"
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"%d"`, kind, apiVersion, c.revision)
	if end < len(objects) {
		fmt.Fprintf(w, `,"continue":"%d","remainingItemCount":%d`, end, len(objects)-end)
	}
	_, _ = w.Write([]byte(`},"items":[`))
	for i, o := range objects[from:end] {
		if i > 0 {
			_, _ = w.Write([]byte{','})
		}
		_, _ = w.Write(q.item(o))
	}
	_, _ = w.Write([]byte("]}\n"))
}

// item returns an object as an item of a list.
func (q request) item(o *object) []byte {
	if q.metadataOnly {
		return o.metadata
	}
	return o.item
}
