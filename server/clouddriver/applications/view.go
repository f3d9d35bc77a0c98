package applications

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/etag"
	"github.com/vedette-io/vedette/internal/jsonwriter"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/clouddriver/web"
	"github.com/vedette-io/vedette/server/infrastructure"
	"github.com/vedette-io/vedette/server/readlimit"
)

// view is what the caller of a request about one application may see of it.
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

func (a *api) readAllowedView(r *http.Request, caller authorize.Caller, application string) (view, error) {
	readable, err := a.Authorizer.Readable(r.Context(), caller)
	if err != nil {
		return view{}, err
	}
	cached, err := a.Views.Application(r.Context(), application)
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
func (a *api) readAccountView(r *http.Request, p web.Params) (view, error) {
	scope := web.NewScope(r, p)
	if err := a.Authorizer.CheckApplication(r.Context(), scope.Caller, p["app"], authorize.Read); err != nil {
		return view{}, err
	}
	if err := a.Authorizer.CheckAccount(r.Context(), scope.Caller, scope.Account, authorize.Read); err != nil {
		return view{}, err
	}
	cached, err := a.Views.Application(r.Context(), p["app"])
	return view{CachedApplication: cached}, err
}

// key identifies a response among those to all callers: which accounts they see decides, not who
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

// writeView writes a response to a request about one application, which is encoded once for all
// callers while the application does not change.
func (a *api) writeView(w http.ResponseWriter, r *http.Request, v view, key string, encode func(e *encoder)) error {
	response, release, err := readlimit.Read(r.Context(), a.ReadLimiter, readlimit.CallerOf(r), func() (*encodedResponse, int64, error) {
		response, err := infrastructure.Derive(v.CachedApplication, key, func() (*encodedResponse, error) {
			e := encoder{jsonwriter.Writer{Limit: maxResponseBytes}}
			encode(&e)
			if e.IsFull() {
				return nil, vedette.Errorf(vedette.Unavailable, "the answer about application %s is larger than %d MiB, which this server does not send",
					v.Name, maxResponseBytes>>20)
			}
			return newEncodedResponse(e.B)
		})
		if err != nil {
			return nil, 0, err
		}
		return response, response.Bytes(), nil
	})
	if err != nil {
		return err
	}
	defer release()
	response.write(w, r)
	return nil
}

// maxResponseBytes limits a response about one application. A server group appears once for each
// load balancer that sends traffic to it, so the response can be much larger than what is stored.
const maxResponseBytes = 64 << 20

// writeEncoded writes a response that is not kept.
func (a *api) writeEncoded(w http.ResponseWriter, r *http.Request, body []byte) error {
	release, err := a.ReadLimiter.Acquire(r.Context(), readlimit.CallerOf(r), int64(len(body)))
	if err != nil {
		return err
	}
	defer release()
	etag.Write(w, r, append(body, '\n'), xxhash.Sum64(body))
	return nil
}
