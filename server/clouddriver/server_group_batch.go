package clouddriver

import (
	"net/http"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/authorize"
)

// maxBatch limits how many applications or server groups one request names.
const maxBatch = 500

// maxBatchBytes limits the answer to such a request.
const maxBatchBytes = 32 << 20

// listServerGroupBatch mirrors ServerGroupController.getServerGroups: the server groups of
// several applications, or several server groups. What the caller may not read is left out.
// Clouddriver leaves out everything if Fiat is used, because its view of a server group has no
// application to check; this server checks the one of the moniker.
func (a *api) listServerGroupBatch(w http.ResponseWriter, r *http.Request, _ pathParams) error {
	applications, _ := listParam(r, "applications")
	ids, _ := listParam(r, "ids")
	if (len(applications) == 0) == (len(ids) == 0) {
		return vedette.Errorf(vedette.Invalid, "Provide either 'applications' or 'ids' parameter (but not both)")
	}
	if n := len(applications) + len(ids); n > maxBatch {
		return vedette.Errorf(vedette.Invalid, "the request names %d applications or server groups: ask for at most %d at a time", n, maxBatch)
	}
	var e encoder
	var err error
	e.array(func() {
		if len(ids) > 0 {
			err = a.encodeServerGroupsByID(&e, r, ids)
		} else {
			err = a.encodeServerGroupsByApplication(&e, r, applications)
		}
	})
	if err != nil {
		return err
	}
	return a.writeEncoded(w, r, e.b)
}

func (a *api) encodeServerGroupsByApplication(e *encoder, r *http.Request, applications []string) error {
	if provider := r.URL.Query().Get("cloudProvider"); provider != "" && !strings.EqualFold(provider, cloudProvider) {
		return nil
	}
	caller := authorize.CallerOf(r)
	readable, err := a.Authorizer.ReadableApplications(r.Context(), caller)
	if err != nil {
		return err
	}
	for _, application := range applications {
		if readable != nil && !readable(application) {
			continue
		}
		v, err := a.readAllowedView(r, caller, application)
		if err != nil {
			return err
		}
		for _, g := range v.serverGroups() {
			e.serverGroupSummary(g)
			if len(e.b) > maxBatchBytes {
				return vedette.Errorf(vedette.Invalid, "the answer is larger than %d MiB: ask for fewer applications at a time", maxBatchBytes>>20)
			}
		}
	}
	return nil
}

// encodeServerGroupsByID skips server groups that do not exist, like Clouddriver.
func (a *api) encodeServerGroupsByID(e *encoder, r *http.Request, ids []string) error {
	if invalid := invalidIDs(ids); len(invalid) > 0 {
		return vedette.Errorf(vedette.Invalid, "Expected ids in the format <account>:<region>:<name> but got invalid ids: %s",
			truncate(strings.Join(invalid, ", "), 1000))
	}
	caller := authorize.CallerOf(r)
	readable, err := a.Authorizer.Readable(r.Context(), caller)
	if err != nil {
		return err
	}
	readableApplications, err := a.Authorizer.ReadableApplications(r.Context(), caller)
	if err != nil {
		return err
	}
	for _, id := range ids {
		parts := splitID(id)
		account := vedette.AccountName(parts[0])
		if readable != nil && !readable(account) {
			continue
		}
		g, err := a.findServerGroup(r, account, parts[1], parts[2])
		if vedette.KindOf(err) == vedette.NotFound {
			continue
		}
		if err != nil {
			return err
		}
		if readableApplications == nil || readableApplications(g.Moniker.App) {
			e.serverGroupSummary(g)
		}
		if len(e.b) > maxBatchBytes {
			return vedette.Errorf(vedette.Invalid, "the answer is larger than %d MiB: ask for fewer server groups at a time", maxBatchBytes>>20)
		}
	}
	return nil
}

// splitID splits "account:region:name". Like Java, it ignores colons at the end.
func splitID(id string) []string { return strings.Split(strings.TrimRight(id, ":"), ":") }

func invalidIDs(ids []string) []string {
	var invalid []string
	for _, id := range ids {
		if len(splitID(id)) != 3 {
			invalid = append(invalid, id)
		}
	}
	return invalid
}
