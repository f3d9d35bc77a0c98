package applications

import (
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/clouddriver/web"
	"github.com/vedette-io/vedette/server/front50"
	"github.com/vedette-io/vedette/server/infrastructure"
)

// listProjectClusters mirrors ProjectController.getClusters. Clouddriver shows every project to
// everyone; this server counts only what the caller may read.
func (a *api) listProjectClusters(w http.ResponseWriter, r *http.Request, p web.Params) error {
	if a.Projects == nil {
		return vedette.Errorf(vedette.Unavailable, "the clusters of projects need Front50: set services.front50.baseUrl in the server's configuration")
	}
	caller := authorize.CallerOf(r)
	project, err := a.Projects.Project(r.Context(), strings.ToLower(p["project"]), caller.Header)
	if vedette.KindOf(err) == vedette.NotFound {
		return vedette.Errorf(vedette.NotFound, "Project not found: (name: %s)", p["project"])
	}
	if err != nil {
		return err
	}
	if n := len(project.Config.Applications); n > maxBatch {
		return vedette.Errorf(vedette.Invalid, "the project has %d applications: this server shows projects of at most %d", n, maxBatch)
	}
	applications, err := a.readProjectApplications(r, caller, project.Config.Applications)
	if err != nil {
		return err
	}
	var e encoder
	e.Array(func() {
		for _, c := range project.Config.Clusters {
			e.projectCluster(newProjectCluster(project, c, applications))
		}
	})
	return a.writeEncoded(w, r, e.B)
}

// readProjectApplications reads those applications of a project that the caller may read.
func (a *api) readProjectApplications(r *http.Request, caller authorize.Caller, names []string) (map[string]view, error) {
	readable, err := a.Authorizer.ReadableApplications(r.Context(), caller)
	if err != nil {
		return nil, err
	}
	applications := map[string]view{}
	for _, name := range names {
		if readable != nil && !readable(name) {
			continue
		}
		v, err := a.readAllowedView(r, caller, name)
		if err != nil {
			return nil, err
		}
		applications[name] = v
	}
	return applications, nil
}

// projectCluster is one entry of a project's dashboard.
type projectCluster struct {
	front50.ProjectCluster
	applications []projectApplication
	counts       infrastructure.InstanceCounts
}

type projectApplication struct {
	name     string
	regions  []*projectRegion // sorted
	lastPush int64
}

// projectRegion sums up the enabled server groups of a namespace.
type projectRegion struct {
	name     string
	images   []string
	deployed int64 // milliseconds
	counts   infrastructure.InstanceCounts
}

func newProjectCluster(project front50.Project, c front50.ProjectCluster, applications map[string]view) projectCluster {
	result := projectCluster{ProjectCluster: c}
	names := c.Applications
	if names == nil {
		names = project.Config.Applications
	}
	for _, name := range names {
		application := projectApplication{name: name}
		if v, ok := applications[name]; ok && v.shows(vedette.AccountName(c.Account)) {
			application.addClusters(v.ClustersOf(vedette.AccountName(c.Account)), c)
		}
		for _, region := range application.regions {
			result.counts.Add(region.counts)
		}
		result.applications = append(result.applications, application)
	}
	return result
}

// addClusters adds the server groups of those clusters that a project selects. Those that are
// disabled or have no instances do not count.
func (p *projectApplication) addClusters(clusters []*infrastructure.Cluster, selection front50.ProjectCluster) {
	regions := map[string]*projectRegion{}
	for _, c := range clusters {
		stack, detail := parseClusterName(c.Name)
		if !matchesName(selection.Stack, stack) || !matchesName(selection.Detail, detail) {
			continue
		}
		for _, g := range c.ServerGroups {
			if g.Disabled || g.Counts.Total == 0 {
				continue
			}
			if regions[g.Namespace] == nil {
				regions[g.Namespace] = &projectRegion{name: g.Namespace}
				p.regions = append(p.regions, regions[g.Namespace])
			}
			regions[g.Namespace].add(g)
		}
	}
	slices.SortFunc(p.regions, func(x, y *projectRegion) int { return strings.Compare(x.name, y.name) })
	for _, region := range p.regions {
		p.lastPush = max(p.lastPush, region.deployed)
	}
}

func (r *projectRegion) add(g *infrastructure.ServerGroup) {
	r.counts.Add(g.Counts)
	r.deployed = max(r.deployed, 1000*g.Created)
	for _, image := range g.Images {
		if !slices.Contains(r.images, image) {
			r.images = append(r.images, image)
		}
	}
}

// matchesName reports whether a part of a cluster's name is the one that a project selects.
func matchesName(selected *string, part string) bool {
	if selected == nil {
		return part == ""
	}
	return *selected == "*" || part != "" && *selected == part
}

// clusterName is Frigga's pattern of application, stack and detail, and pushSuffix that of the
// sequence. Names with a kind ("deployment web") do not match, so that only "*" selects them.
var (
	clusterName = regexp.MustCompile(`^[a-zA-Z0-9._]+(?:-([a-zA-Z0-9._]*)(?:-([-a-zA-Z0-9._~^]*))?)?$`)
	pushSuffix  = regexp.MustCompile(`-v[0-9]{3,6}$`)
)

// parseClusterName returns the stack and the detail of a cluster's name; empty if it has none.
func parseClusterName(name string) (stack, detail string) {
	match := clusterName.FindStringSubmatch(pushSuffix.ReplaceAllString(name, ""))
	if match == nil {
		return "", ""
	}
	return match[1], match[2]
}

func (e *encoder) projectCluster(c projectCluster) {
	e.Object(func() {
		e.Text("account", c.Account)
		if c.Stack != nil {
			e.Text("stack", *c.Stack)
		}
		if c.Detail != nil {
			e.Text("detail", *c.Detail)
		}
		e.instanceCounts(c.counts)
		e.Name("applications")
		e.Array(func() {
			for _, application := range c.applications {
				e.projectApplication(application)
			}
		})
	})
}

func (e *encoder) projectApplication(p projectApplication) {
	e.Object(func() {
		e.Text("application", p.name)
		e.Number("lastPush", p.lastPush)
		e.Name("clusters")
		e.Array(func() {
			for _, region := range p.regions {
				e.projectRegion(region)
			}
		})
	})
}

// projectRegion appends one build, which has no number, because Kubernetes knows of no build.
func (e *encoder) projectRegion(r *projectRegion) {
	e.Object(func() {
		e.Text("region", r.name)
		e.Number("lastPush", r.deployed)
		e.instanceCounts(r.counts)
		e.Name("builds")
		e.Array(func() {
			e.Object(func() {
				e.Raw("buildNumber", `"0"`)
				e.Number("deployed", r.deployed)
				e.Name("images")
				e.Texts(r.images)
			})
		})
	})
}
