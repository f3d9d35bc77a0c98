package clouddriver

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/etag"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/infrastructure"
	"github.com/vedette-io/vedette/server/readlimit"
)

// viewRoutes are the routes of applications and what they consist of.
func (a *api) viewRoutes() []route {
	const cluster = "applications/{app}/clusters/{account}/{cluster}"
	return []route{
		{"applications", a.listApplications},
		{"applications/{app}", a.getApplication},
		{"applications/{app}/clusters", a.listClusters},
		{"applications/{app}/clusters/{account}", a.listAccountClusters},
		{cluster, a.getCluster},
		{cluster + "/{type}", a.getTypedCluster},
		{cluster + "/{type}/serverGroups", a.listClusterServerGroups},
		{cluster + "/{type}/serverGroups/{name}", a.getClusterServerGroup},
		{cluster + "/{type}/{scope}/serverGroups/target/{target}", a.getTarget},
		{cluster + "/{type}/{scope}/serverGroups/target/{target}/{summary}", a.getTargetSummary},
		{"applications/{app}/serverGroups", a.listServerGroups},
		{"applications/{app}/serverGroups/{account}/{region}/{name}", a.getServerGroup},
		{"applications/{app}/serverGroupManagers", a.listManagers},
		{"serverGroups", a.listServerGroupBatch},
		{"serverGroups/{account}/{region}/{name}", a.getServerGroup},
		{"instances/{account}/{location}/{id}", a.getInstance},
		{"projects/{project}/clusters", a.listProjectClusters},
	}
}

// view is the answer to a request about one application: what its caller may see of it.
type view struct {
	*infrastructure.CachedApplication
	visible map[vedette.AccountName]bool // nil means all
}

// shows reports whether the caller may see an account.
func (v view) shows(account vedette.AccountName) bool { return v.visible == nil || v.visible[account] }

// readView reads the application in a path, if the caller may read it. Accounts that the caller
// may not read are hidden.
func (a *api) readView(r *http.Request, application string) (view, error) {
	caller := authorize.CallerOf(r)
	if err := a.Authorizer.CheckApplication(r.Context(), caller, application, authorize.Read); err != nil {
		return view{}, err
	}
	return a.readAllowedView(r, caller, application)
}

// readAllowedView is readView for an application that the caller may read.
func (a *api) readAllowedView(r *http.Request, caller authorize.Caller, application string) (view, error) {
	readable, err := a.Authorizer.Readable(r.Context(), caller)
	if err != nil {
		return view{}, err
	}
	cached, err := a.views.Application(r.Context(), application)
	if err != nil {
		return view{}, err
	}
	v := view{CachedApplication: cached}
	if readable != nil {
		v.visible = map[vedette.AccountName]bool{}
		for _, account := range cached.Accounts() {
			v.visible[account] = readable(account)
		}
	}
	return v, nil
}

// readAccountView is readView for one account, which the caller must be allowed to read.
func (a *api) readAccountView(r *http.Request, p pathParams) (view, error) {
	scope := newRequestScope(r, p)
	if err := a.Authorizer.CheckApplication(r.Context(), scope.caller, p["app"], authorize.Read); err != nil {
		return view{}, err
	}
	if err := a.Authorizer.CheckAccount(r.Context(), scope.caller, scope.account, authorize.Read); err != nil {
		return view{}, err
	}
	cached, err := a.views.Application(r.Context(), p["app"])
	return view{CachedApplication: cached}, err
}

// key identifies an answer among those to all callers: which accounts they see decides, not who
// they are.
func (v view) key(endpoint string, params ...string) string {
	var b strings.Builder
	b.WriteString(endpoint)
	for _, p := range params {
		b.WriteByte('&')
		b.WriteString(url.QueryEscape(p))
	}
	b.WriteByte('?')
	for _, account := range v.Accounts() {
		if v.shows(account) {
			b.WriteByte('1')
		} else {
			b.WriteByte('0')
		}
	}
	return b.String()
}

// writeView writes an answer to a request about one application, which is encoded once for all
// callers while the application does not change.
func (a *api) writeView(w http.ResponseWriter, r *http.Request, v view, key string, encode func(e *encoder)) error {
	answer, release, err := readlimit.Read(r.Context(), a.ReadLimiter, readlimit.CallerOf(r), func() (*infrastructure.Answer, int64, error) {
		answer, err := v.Answer(key, func() (*infrastructure.Answer, error) {
			e := encoder{limit: maxAnswerBytes}
			encode(&e)
			if e.isFull() {
				return nil, vedette.Errorf(vedette.Unavailable, "the answer about application %s is larger than %d MiB, which this server does not send",
					v.Name, maxAnswerBytes>>20)
			}
			return newAnswer(e.b)
		})
		if err != nil {
			return nil, 0, err
		}
		return answer, answer.Bytes(), nil
	})
	if err != nil {
		return err
	}
	defer release()
	writeAnswer(w, r, answer)
	return nil
}

// maxAnswerBytes limits an answer about one application. A server group appears once for each
// load balancer that sends traffic to it, so the answer can be much larger than what is stored.
const maxAnswerBytes = 64 << 20

// minCompressed is the size from which an answer is kept in compressed form, too. Compressing
// takes longer than anything else about a large answer, and nearly all callers want it.
const minCompressed = 16 << 10

func newAnswer(body []byte) (*infrastructure.Answer, error) {
	answer := &infrastructure.Answer{Body: append(body, '\n'), Tag: xxhash.Sum64(body)}
	if len(body) < minCompressed {
		return answer, nil
	}
	var err error
	answer.Compressed, err = compress(answer.Body)
	return answer, err
}

// writeAnswer writes an answer, compressed if it is kept so and the client accepts that. The
// handler that compresses other answers leaves those that have an encoding.
func writeAnswer(w http.ResponseWriter, r *http.Request, answer *infrastructure.Answer) {
	if !etag.Begin(w, r, answer.Tag) {
		return
	}
	if answer.Compressed != nil && acceptsGzip(r) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(answer.Compressed) // the client may have disconnected
		return
	}
	_, _ = w.Write(answer.Body)
}

// acceptsGzip reports whether a request accepts gzip. A quality of 0 refuses it.
func acceptsGzip(r *http.Request) bool {
	for _, header := range r.Header.Values("Accept-Encoding") {
		for part := range strings.SplitSeq(header, ",") {
			coding, quality, _ := strings.Cut(strings.TrimSpace(part), ";")
			quality = strings.TrimRight(strings.ReplaceAll(quality, " ", ""), "0")
			if strings.EqualFold(strings.TrimSpace(coding), "gzip") && quality != "q=" && quality != "q=0." && quality != "q=." {
				return true
			}
		}
	}
	return false
}

// writeEncoded writes an answer that is not kept.
func (a *api) writeEncoded(w http.ResponseWriter, r *http.Request, body []byte) error {
	release, err := a.ReadLimiter.Acquire(r.Context(), readlimit.CallerOf(r), int64(len(body)))
	if err != nil {
		return err
	}
	defer release()
	etag.Write(w, r, append(body, '\n'), xxhash.Sum64(body))
	return nil
}
