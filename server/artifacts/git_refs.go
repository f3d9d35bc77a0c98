package artifacts

import (
	"io"
	"net/http"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/fair"
	"github.com/vedette-io/vedette/server/artifacts/egress"
)

const (
	// maxRefBytes bounds a list of branches and tags, which is in memory.
	maxRefBytes = 32 << 20
	// refCopies is how often the bytes of a list are in memory, in maps of names of about 40 bytes.
	refCopies = 3
	// freeRefBytes is what a list may have before it takes memory of artifacts: 15,000 branches and tags.
	freeRefBytes = 1 << 20
)

// refList is the list of branches and tags of one fetch. It pays for what arrives, and does not wait, because a
// server that stalls would keep what others wait for. It is not safe for concurrent use.
type refList struct {
	memory *fair.Line
	caller string
	read   int64
	grants []*fair.Grant
	err    error // why reading ended; go-git hides it
}

func (l *refList) limit(list io.Reader) io.Reader { return refReader{l, list} }

func (l *refList) release() {
	for _, g := range l.grants {
		g.Release()
	}
}

type refReader struct {
	*refList
	list io.Reader
}

// Read reads what the list may have and memory is there for.
func (r refReader) Read(p []byte) (int, error) {
	switch {
	case r.read >= maxRefBytes:
		r.err = &egress.SizeError{Limit: maxRefBytes}
	case r.read >= freeRefBytes*int64(len(r.grants)+1):
		grant := r.memory.TryAcquire(r.caller, refCopies*freeRefBytes)
		if grant == nil {
			r.err = vedette.Errorf(vedette.Unavailable, "the list of branches and tags is long, and other artifacts use the memory for it: "+
				"retry later, or delete branches")
		} else {
			r.grants = append(r.grants, grant)
		}
	}
	if r.err != nil {
		return 0, r.err
	}
	n, err := r.list.Read(p)
	r.refList.read += int64(n)
	return n, err
}

// refTransport limits the lists of branches and tags that arrive over HTTP.
type refTransport struct {
	http.RoundTripper
	refs *refList
}

func (t refTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.RoundTripper.RoundTrip(r)
	if err == nil && strings.HasSuffix(r.URL.Path, "/info/refs") {
		response.Body = struct {
			io.Reader
			io.Closer
		}{t.refs.limit(response.Body), response.Body}
	}
	return response, err
}
