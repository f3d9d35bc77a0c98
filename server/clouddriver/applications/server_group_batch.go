package applications

import (
	"net/http"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/etag"
	"github.com/vedette-io/vedette/internal/textcheck"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/clouddriver/web"
	"github.com/vedette-io/vedette/server/infrastructure"
	"github.com/vedette-io/vedette/server/readlimit"
	"github.com/vedette-io/vedette/server/store/read"
)

// maxBatch limits how many applications or server groups one request names.
const maxBatch = 500

// maxBatchBytes limits the answer to such a request.
const maxBatchBytes = 32 << 20

// listServerGroupBatch mirrors ServerGroupController.getServerGroups: the server groups of
// several applications, or several server groups. What the caller may not read is left out.
// Clouddriver leaves out everything if Fiat is used, because its view of a server group has no
// application to check; this server checks the one of the moniker.
func (a *api) listServerGroupBatch(w http.ResponseWriter, r *http.Request, _ web.Params) error {
	applications, _ := web.ListParam(r, "applications")
	ids, _ := web.ListParam(r, "ids")
	if (len(applications) == 0) == (len(ids) == 0) {
		return vedette.Errorf(vedette.Invalid, "Provide either 'applications' or 'ids' parameter (but not both)")
	}
	if n := len(applications) + len(ids); n > maxBatch {
		return vedette.Errorf(vedette.Invalid, "the request names %d applications or server groups: ask for at most %d at a time", n, maxBatch)
	}
	groups, err := a.readServerGroupBatch(r, applications, ids)
	if err != nil {
		return err
	}
	size := sizeOf(groups, false)
	if size > maxBatchBytes {
		return vedette.Errorf(vedette.Invalid, "the answer would be larger than %d MiB: ask for fewer applications or server groups at a time",
			maxBatchBytes>>20)
	}
	release, err := a.ReadLimiter.Acquire(r.Context(), readlimit.CallerOf(r), int64(size))
	if err != nil {
		return err
	}
	defer release()
	var e encoder
	e.Grow(size)
	e.Array(func() {
		for _, g := range groups {
			e.serverGroupSummary(g)
		}
	})
	etag.Write(w, r, append(e.B, '\n'), xxhash.Sum64(e.B))
	return nil
}

func (a *api) readServerGroupBatch(r *http.Request, applications, ids []string) ([]*infrastructure.ServerGroup, error) {
	if len(ids) > 0 {
		return a.readServerGroupsByID(r, ids)
	}
	return a.readServerGroupsByApplication(r, applications)
}

func (a *api) readServerGroupsByApplication(r *http.Request, applications []string) ([]*infrastructure.ServerGroup, error) {
	if provider := web.SingleParam(r.URL.Query(), "cloudProvider"); provider != "" && !strings.EqualFold(provider, cloudProvider) {
		return nil, nil
	}
	caller := authorize.CallerOf(r)
	readable, err := a.Authorizer.ReadableApplications(r.Context(), caller)
	if err != nil {
		return nil, err
	}
	var groups []*infrastructure.ServerGroup
	for _, application := range applications {
		if readable != nil && !readable(application) {
			continue
		}
		v, err := a.readAllowedView(r, caller, application)
		if err != nil {
			return nil, err
		}
		groups = append(groups, v.serverGroups()...)
	}
	return groups, nil
}

// readServerGroupsByID skips server groups that do not exist, like Clouddriver.
func (a *api) readServerGroupsByID(r *http.Request, ids []string) ([]*infrastructure.ServerGroup, error) {
	if invalid := invalidIDs(ids); len(invalid) > 0 {
		return nil, vedette.Errorf(vedette.Invalid, "Expected ids in the format <account>:<region>:<name> but got invalid ids: %s",
			textcheck.Truncate(strings.Join(invalid, ", "), 1000))
	}
	caller := authorize.CallerOf(r)
	readable, err := a.Authorizer.Readable(r.Context(), caller)
	if err != nil {
		return nil, err
	}
	readableApplications, err := a.Authorizer.ReadableApplications(r.Context(), caller)
	if err != nil {
		return nil, err
	}
	var names []read.ObjectRef
	for _, id := range ids {
		parts := splitID(id)
		ref, ok := serverGroupRef(vedette.AccountName(parts[0]), parts[1], parts[2])
		if ok && (readable == nil || readable(ref.Account)) {
			names = append(names, ref)
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	groups, err := a.Views.ServerGroups(r.Context(), names)
	if err != nil {
		return nil, err
	}
	if err := a.confirmAbsences(r, names, groups); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(groups, func(g *infrastructure.ServerGroup) bool {
		return g == nil || readableApplications != nil && !readableApplications(g.Moniker.App)
	}), nil
}

// confirmAbsences is confirmAbsence for the server groups that are nil. That they do not exist is no
// error.
func (a *api) confirmAbsences(r *http.Request, names []read.ObjectRef, groups []*infrastructure.ServerGroup) error {
	var accounts []vedette.AccountName
	for i, g := range groups {
		if g == nil {
			accounts = append(accounts, names[i].Account)
		}
	}
	if len(accounts) == 0 {
		return nil
	}
	slices.Sort(accounts)
	err := a.confirmAbsence(r, slices.Compact(accounts), vedette.Errorf(vedette.NotFound, "Some of the server groups do not exist"))
	if vedette.KindOf(err) == vedette.NotFound {
		return nil
	}
	return err
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
