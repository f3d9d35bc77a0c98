package clouddriver

import (
	"errors"
	"net/http"

	"github.com/vedette-io/vedette/server/clouddriver/web"
)

// forwarding takes operations and results of other servers. It checks itself who sends them.
type forwarding interface {
	Operation(w http.ResponseWriter, r *http.Request) error
	Result(w http.ResponseWriter, r *http.Request) error
}

// forwardingRoutes mirror those by which the Scale Agent's plugin passes operations on to other Clouddrivers. They exist only if they are
// switched on.
func (a *api) forwardingRoutes() []web.Route {
	if a.Forwarding == nil {
		return nil
	}
	return []web.Route{
		web.Handle("POST armory/agent/operations", forwarded(a.Forwarding.Operation)),
		web.Handle("POST armory/agent/operationresults", forwarded(a.Forwarding.Result)),
	}
}

// forwarded answers a sender who has proved nothing with a challenge.
func forwarded(take func(http.ResponseWriter, *http.Request) error) web.Handler {
	return func(w http.ResponseWriter, r *http.Request, _ web.Params) error {
		err := take(w, r)
		var unproven interface{ Challenge() string }
		if !errors.As(err, &unproven) {
			return err
		}
		w.Header().Set("WWW-Authenticate", unproven.Challenge())
		return &web.Error{Status: http.StatusUnauthorized, Message: err.Error(),
			Exception: "org.springframework.security.authentication.InsufficientAuthenticationException"}
	}
}
