package upstream

import (
	"context"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/logthrottle"
	"github.com/vedette-io/vedette/internal/requestid"
	"github.com/vedette-io/vedette/server/upstream/spool"
)

// client addresses the upstream Clouddriver.
type client struct {
	Config
	base        *url.URL
	guard       loopGuard
	stats       *stats
	transport   *transport
	memory      *spool.Memory // for answers of both sides
	localMemory *spool.Memory // for answers of this server that may have to be filtered
}

// minLocalBytes lets answers of agents' accounts be as large as the limit of all responses allows, however small upstream.mergeBytes is.
const minLocalBytes = 32 << 20

func newClient(cfg Config) (*client, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	base, err := url.Parse(strings.TrimRight(cfg.BaseURL, "/"))
	if err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "the address of the upstream Clouddriver is not a URL")
	}
	s := &stats{log: cfg.Log, warnings: logthrottle.Limiter{Interval: time.Minute}}
	return &client{Config: cfg, base: base, guard: newLoopGuard(), stats: s, transport: newTransport(cfg, s),
		memory: spool.NewMemory(cfg.MergeBytes * 3 / 4), localMemory: spool.NewMemory(max(cfg.MergeBytes/4, minLocalBytes))}, nil
}

// url returns the URL of a path there. The path stays as it is escaped, because Orca sends empty
// segments, and names contain escaped characters.
func (c *client) url(path *url.URL, rawQuery string) *url.URL {
	u := *c.base
	u.Path, u.RawPath = c.base.Path+path.Path, c.base.EscapedPath()+path.EscapedPath()
	u.RawQuery = rawQuery
	return &u
}

// checkPath rejects dot segments, which would leave the path of the base URL. Tomcat removes what
// follows a semicolon before it looks at a segment.
func checkPath(u *url.URL) error {
	segments := strings.FieldsFunc(u.Path, func(r rune) bool { return r == '/' || r == '\\' })
	isDots := func(segment string) bool {
		name, _, _ := strings.Cut(segment, ";")
		return name == "." || name == ".."
	}
	if slices.ContainsFunc(segments, isDots) {
		return vedette.Errorf(vedette.Invalid, "the path %.300q must not contain the segments . and ..", u.Path)
	}
	return nil
}

// complete adds to a header what the upstream Clouddriver needs, and the id of the caller's request.
func (c *client) complete(ctx context.Context, header http.Header) {
	c.guard.mark(header)
	requestid.SetHeader(ctx, header)
	if c.Username != "" {
		request := http.Request{Header: header}
		request.SetBasicAuth(c.Username, c.Password.Reveal())
	}
	for name, value := range c.Headers {
		header.Set(name, value.Reveal())
	}
}

// connectionHeaders concern one connection, and are not passed on.
var connectionHeaders = [...]string{"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Te",
	"Trailer", "Transfer-Encoding", "Upgrade"}

// bodyHeaders concern the body of a request, the caller's copy of the answer, and its encoding.
var bodyHeaders = [...]string{"Accept-Encoding", "Content-Length", "Content-Type", "Content-Encoding", "Expect", "If-Match",
	"If-Modified-Since", "If-None-Match", "If-Range", "If-Unmodified-Since", "Range"}

// readHeader returns the header for a request of our own that reads a whole answer for a caller.
func readHeader(caller http.Header) http.Header {
	header := caller.Clone()
	for _, value := range caller.Values("Connection") {
		for name := range strings.SplitSeq(value, ",") {
			header.Del(textproto.TrimString(name))
		}
	}
	for _, name := range connectionHeaders {
		header.Del(name)
	}
	for _, name := range bodyHeaders {
		header.Del(name)
	}
	return header
}
