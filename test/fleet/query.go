package fleet

import (
	"bufio"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/vedette-io/vedette"
)

// query is a request for objects of one kind.
type query struct {
	cluster   *Cluster
	series    *series
	namespace string // empty for all
	values    url.Values
	metadata  bool // PartialObjectMetadata in place of the objects
}

func (q *query) serve(w http.ResponseWriter, r *http.Request, rest []string) {
	q.metadata = strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata")
	w.Header().Set("Content-Type", "application/json")
	counts := &q.cluster.fleet.counts
	switch {
	case len(rest) == 1 && rest[0] != "":
		q.one(w, r, rest[0])
	case len(rest) > 1:
		refuse(w, http.StatusNotFound, "NotFound", "the server could not find the requested resource")
	case r.Method != http.MethodGet:
		refuse(w, http.StatusMethodNotAllowed, "MethodNotAllowed", "simulated clusters create nothing that they are asked for, and delete nothing")
	case q.values.Get("watch") == "true" || q.values.Get("watch") == "1":
		counts.watches.Add(1)
		q.watch(w, r)
	default:
		counts.lists.Add(1)
		q.list(w)
	}
}

// wanted reports whether the request is for an object.
func (q *query) wanted(i int) bool {
	selector := q.values.Get("fieldSelector")
	if q.namespace == "" && selector == "" {
		return true
	}
	key := q.cluster.sample.Key(q.series.Kind, i)
	if q.namespace != "" && key.Namespace != q.namespace {
		return false
	}
	for term := range strings.SplitSeq(selector, ",") {
		if term != "" && !holds(term, key) {
			return false
		}
	}
	return true
}

// holds evaluates one term of a field selector.
func holds(term string, key vedette.Key) bool {
	field, value, _ := strings.Cut(term, "=")
	field, not := strings.CutSuffix(field, "!")
	is := key.Name
	if field == "metadata.namespace" {
		is = key.Namespace
	}
	return (is == strings.TrimPrefix(value, "=")) != not
}

// append appends an object as the request wants to see it.
func (q *query) append(dst []byte, i int, revision uint64) []byte {
	if q.metadata {
		return q.cluster.sample.AppendMetadata(dst, q.series.Kind, i, revision)
	}
	return q.cluster.sample.Append(dst, q.series.Kind, i, revision)
}

// token is what a page leaves for the next: the revision of them all and the
// number to go on from.
func token(revision uint64, next int) string { return fmt.Sprintf("%d.%d", revision, next) }

func parseToken(s string) (revision uint64, next int, err error) {
	if s == "" {
		return 0, 0, nil
	}
	_, err = fmt.Sscanf(s, "%d.%d", &revision, &next)
	return revision, next, err
}

// list answers a page. All pages of a list show the cluster as it was when the
// first of them was asked for.
func (q *query) list(w http.ResponseWriter) {
	limit, _ := strconv.Atoi(q.values.Get("limit")) // none is 0, which is all
	at, from, err := parseToken(q.values.Get("continue"))
	if err != nil {
		refuse(w, http.StatusBadRequest, "BadRequest", "continue key is not valid: "+err.Error())
		return
	}
	objects, revision, next, remaining, err := q.series.page(at, from, limit, q.wanted)
	if err != nil {
		refuse(w, http.StatusGone, "Expired", "The provided continue parameter is too old")
		return
	}
	b := bufio.NewWriterSize(w, 32<<10)
	kind, apiVersion := q.series.Kind.Name+"List", q.series.APIVersion()
	if q.metadata {
		kind, apiVersion = "PartialObjectMetadataList", "meta.k8s.io/v1"
	}
	fmt.Fprintf(b, `{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"%d"`, kind, apiVersion, revision)
	if next > 0 {
		fmt.Fprintf(b, `,"continue":%q,"remainingItemCount":%d`, token(revision, next), remaining)
	}
	_, _ = b.WriteString(`},"items":[`)
	q.items(b, objects)
	_, _ = b.WriteString("]}\n")
	_ = b.Flush() // a client that has gone wants no answer
}

// items writes the objects of a list, which leave kind and apiVersion to the
// list, but for metadata.
func (q *query) items(b *bufio.Writer, objects []object) {
	head := len(fmt.Sprintf(`{"kind":%q,"apiVersion":%q,`, q.series.Kind.Name, q.series.APIVersion()))
	var raw []byte
	for n, o := range objects {
		if n > 0 {
			_ = b.WriteByte(',')
		}
		raw = q.append(raw[:0], o.i, o.is.revision())
		if q.metadata {
			_, _ = b.Write(raw)
			continue
		}
		_ = b.WriteByte('{')
		if _, err := b.Write(raw[head:]); err != nil {
			return
		}
	}
}
