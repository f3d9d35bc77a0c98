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
	registry  *registry
	namespace string // "" means all
	values    url.Values
	metadata  bool // return PartialObjectMetadata
}

func (q *query) serve(w http.ResponseWriter, r *http.Request, rest []string) {
	q.metadata = strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata")
	w.Header().Set("Content-Type", "application/json")
	counts := &q.cluster.fleet.counts
	switch {
	case len(rest) == 1 && rest[0] != "":
		q.serveObject(w, r, rest[0])
	case len(rest) > 1:
		writeStatus(w, http.StatusNotFound, "NotFound", "the server could not find the requested resource")
	case r.Method != http.MethodGet:
		writeStatus(w, http.StatusMethodNotAllowed, "MethodNotAllowed", "simulated clusters do not support creating or deleting objects")
	case q.values.Get("watch") == "true" || q.values.Get("watch") == "1":
		counts.watches.Add(1)
		q.watch(w, r)
	default:
		counts.lists.Add(1)
		if q.metadata {
			counts.metadataLists.Add(1)
		}
		q.list(w)
	}
}

// matches reports whether the selectors match an object.
func (q *query) matches(i int) bool {
	selector := q.values.Get("fieldSelector")
	if q.namespace == "" && selector == "" {
		return true
	}
	key := q.cluster.sample.Key(q.registry.Kind, i)
	if q.namespace != "" && key.Namespace != q.namespace {
		return false
	}
	for term := range strings.SplitSeq(selector, ",") {
		if term != "" && !matchesField(term, key) {
			return false
		}
	}
	return true
}

// matchesField evaluates one term of a field selector.
func matchesField(term string, key vedette.Key) bool {
	field, value, _ := strings.Cut(term, "=")
	field, not := strings.CutSuffix(field, "!")
	got := key.Name
	if field == "metadata.namespace" {
		got = key.Namespace
	}
	return (got == strings.TrimPrefix(value, "=")) != not
}

// append appends an object in the requested form.
func (q *query) append(dst []byte, i int, revision uint64) []byte {
	if q.metadata {
		return q.cluster.sample.AppendMetadata(dst, q.registry.Kind, i, revision)
	}
	return q.cluster.sample.Append(dst, q.registry.Kind, i, revision)
}

// continueToken returns the token of a page: the revision of the list, and the number of the next
// object.
func continueToken(revision uint64, next int) string { return fmt.Sprintf("%d.%d", revision, next) }

func parseContinueToken(s string) (revision uint64, next int, err error) {
	if s == "" {
		return 0, 0, nil
	}
	_, err = fmt.Sscanf(s, "%d.%d", &revision, &next)
	return revision, next, err
}

// list responds with a page. All pages of a list show the cluster as it was at the first page.
func (q *query) list(w http.ResponseWriter) {
	limit, _ := strconv.Atoi(q.values.Get("limit")) // 0 if missing, which means all
	at, from, err := parseContinueToken(q.values.Get("continue"))
	if err != nil {
		writeStatus(w, http.StatusBadRequest, "BadRequest", "continue key is not valid: "+err.Error())
		return
	}
	objects, revision, next, remaining, err := q.registry.page(at, from, limit, q.matches)
	if err != nil {
		writeStatus(w, http.StatusGone, "Expired", "The provided continue parameter is too old")
		return
	}
	b := bufio.NewWriterSize(w, 32<<10)
	kind, apiVersion := q.registry.Kind.Name+"List", q.registry.APIVersion()
	if q.metadata {
		kind, apiVersion = "PartialObjectMetadataList", "meta.k8s.io/v1"
	}
	fmt.Fprintf(b, `{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"%d"`, kind, apiVersion, revision)
	if next > 0 {
		fmt.Fprintf(b, `,"continue":%q,"remainingItemCount":%d`, continueToken(revision, next), remaining)
	}
	_, _ = b.WriteString(`},"items":[`)
	q.items(b, objects)
	_, _ = b.WriteString("]}\n")
	_ = b.Flush() // the client may have disconnected
}

// items writes the objects of a list. They have no kind and apiVersion, because the list has them,
// unless only metadata is requested.
func (q *query) items(b *bufio.Writer, objects []object) {
	head := len(fmt.Sprintf(`{"kind":%q,"apiVersion":%q,`, q.registry.Kind.Name, q.registry.APIVersion()))
	var raw []byte
	for n, o := range objects {
		if n > 0 {
			_ = b.WriteByte(',')
		}
		raw = q.append(raw[:0], o.i, o.version.revision())
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
