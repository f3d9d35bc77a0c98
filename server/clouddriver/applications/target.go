package applications

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/textcheck"
	"github.com/vedette-io/vedette/server/clouddriver/web"
	"github.com/vedette-io/vedette/server/infrastructure"
)

// target chooses a server group of a cluster, as Clouddriver's TargetServerGroup.
type target string

const (
	current  target = "current"
	previous target = "previous"
	oldest   target = "oldest"
	largest  target = "largest"
	onlyOne  target = "fail"
)

// targets are the names of targets. Each may be followed by "_asg" or "_asg_dynamic".
var targets = map[string]target{"current": current, "newest": current, "previous": previous, "ancestor": previous, "oldest": oldest,
	"largest": largest, "fail": onlyOne}

func parseTarget(text string) (target, bool) {
	name := strings.ToLower(text)
	if found, ok := targets[strings.TrimSuffix(name, "_asg_dynamic")]; ok {
		return found, true
	}
	found, ok := targets[strings.TrimSuffix(name, "_asg")]
	return found, ok
}

// getTarget mirrors ClusterController.getTargetServerGroup. Clouddriver finds none for
// Kubernetes, because it searches a cluster that it has loaded without server groups; this server
// answers what the request means.
func (a *api) getTarget(w http.ResponseWriter, r *http.Request, p web.Params) error {
	g, err := a.findTarget(r, p, !strings.EqualFold(cmp.Or(web.SingleParam(r.URL.Query(), "validateOldest"), "true"), "true"))
	if err != nil {
		return err
	}
	var e encoder
	e.serverGroupDetail(g)
	return a.writeEncoded(w, r, e.B)
}

// getTargetSummary mirrors ClusterController.getServerGroupSummary.
func (a *api) getTargetSummary(w http.ResponseWriter, r *http.Request, p web.Params) error {
	g, err := a.findTarget(r, p, true)
	if err != nil {
		return err
	}
	switch strings.ToLower(p["summary"]) {
	case "images":
		var e encoder
		e.imagesSummary(g)
		return a.writeEncoded(w, r, e.B)
	case "image": // deprecated: null for Kubernetes, which Spring writes as an empty body
		w.WriteHeader(http.StatusOK)
		return nil
	}
	return vedette.Errorf(vedette.NotFound, "Summary not found (type: %.300s)", p["summary"])
}

func (e *encoder) imagesSummary(g *infrastructure.ServerGroup) {
	e.Object(func() {
		e.Name("summaries")
		e.Array(func() {
			e.Object(func() {
				e.Text("serverGroupName", g.Name)
				e.buildInfo(g)
			})
		})
	})
}

func (a *api) findTarget(r *http.Request, p web.Params, allowSingleOldest bool) (*infrastructure.ServerGroup, error) {
	wanted, ok := parseTarget(p["target"])
	if !ok {
		if _, err := a.readAccountView(r, p); err != nil {
			return nil, err
		}
		return nil, targetNotFound(p)
	}
	if p["type"] != cloudProvider {
		if _, err := a.readAccountView(r, p); err != nil {
			return nil, err
		}
		return nil, noServerGroups(p)
	}
	_, c, _, err := a.findTypedCluster(r, p)
	if err != nil {
		return nil, err
	}
	candidates := targetCandidates(c, p["scope"], web.TextParam(r.URL.Query(), "onlyEnabled"))
	if len(candidates) == 0 {
		return nil, a.confirmAbsence(r, []vedette.AccountName{vedette.AccountName(p["account"])}, noServerGroups(p))
	}
	return wanted.choose(candidates, p, allowSingleOldest)
}

func targetNotFound(p web.Params) error {
	return vedette.Errorf(vedette.NotFound, "Target not found (target: %.300s)", p["target"])
}

func noServerGroups(p web.Params) error {
	return vedette.Errorf(vedette.NotFound, "No server groups found (account: %s, location: %s, cluster: %s, type: %s)", p["account"],
		p["scope"], p["cluster"], strings.ToUpper(p["type"]))
}

// targetCandidates returns the server groups of a namespace, from the oldest to the newest. Those
// of the same age are sorted by their sequence, as a deployment can make several in one second.
func targetCandidates(c *infrastructure.Cluster, scope string, onlyEnabled bool) []*infrastructure.ServerGroup {
	var list []*infrastructure.ServerGroup
	for _, g := range c.ServerGroups {
		if g.Namespace == scope && g.Created != 0 && !(onlyEnabled && g.Disabled) {
			list = append(list, g)
		}
	}
	slices.SortStableFunc(list, func(x, y *infrastructure.ServerGroup) int {
		return cmp.Or(cmp.Compare(x.Created, y.Created), cmp.Compare(sequenceOf(x), sequenceOf(y)))
	})
	return list
}

func sequenceOf(g *infrastructure.ServerGroup) int {
	if g.Moniker.Sequence == nil {
		return -1
	}
	return *g.Moniker.Sequence
}

// choose returns the target among candidates, of which there is at least one, from the oldest to
// the newest.
func (t target) choose(candidates []*infrastructure.ServerGroup, p web.Params,
	allowSingleOldest bool) (*infrastructure.ServerGroup, error) {
	newest := len(candidates) - 1
	switch t {
	case previous:
		if newest == 0 {
			return nil, targetNotFound(p)
		}
		return candidates[newest-1], nil
	case oldest:
		if newest == 0 && !allowSingleOldest {
			return nil, targetNotFound(p)
		}
		return candidates[0], nil
	case largest:
		return slices.MaxFunc(reversed(candidates), func(x, y *infrastructure.ServerGroup) int {
			return cmp.Compare(len(x.Instances), len(y.Instances))
		}), nil
	case onlyOne:
		if newest > 0 {
			return nil, vedette.Errorf(vedette.NotFound, "More than one target found (scope: %s, serverGroups: %s)", p["scope"],
				joinNames(candidates))
		}
	}
	return candidates[newest], nil
}

// reversed returns the newest first, so that MaxFunc finds the newest of several that are equal.
func reversed(list []*infrastructure.ServerGroup) []*infrastructure.ServerGroup {
	list = slices.Clone(list)
	slices.Reverse(list)
	return list
}

func joinNames(groups []*infrastructure.ServerGroup) string {
	var names []string
	for _, g := range groups {
		names = append(names, infrastructure.FullName(g.Object))
	}
	return textcheck.Truncate(strings.Join(names, ", "), 2000)
}
