package tables

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"github.com/vedette-io/vedette"
)

// podSummary is the projection of a Pod. The statuses of containers are parallel lists; lists
// without values are shorter or missing.
type podSummary struct {
	conditions
	ConditionReasons []string
	Phase            string
	Reason           string
	Deleted          string
	Node             string
	IP               string
	Nominated        string
	Gates            []string
	Containers       []string

	Ready       []bool
	Restarts    []int
	Waiting     []string
	Running     []string
	Exits       []*int
	ExitReasons []string
	ExitSignals []int
	Restarted   []string

	InitNames       []string
	InitPolicies    []string
	InitStatuses    []string
	InitReady       []bool
	InitStarted     []bool
	InitRestarts    []int
	InitWaiting     []string
	InitExits       []*int
	InitExitReasons []string
	InitExitSignals []int
	InitRestarted   []string
}

func pod() kindTable {
	podFields := append(conditionFields(), fields(
		"conditionReasons", "status.conditions.*.reason",
		"phase", "status.phase",
		"reason", "status.reason",
		"deleted", "metadata.deletionTimestamp",
		"node", "spec.nodeName",
		"ip", "status.podIP",
		"nominated", "status.nominatedNodeName",
		"gates", "spec.readinessGates.*.conditionType",
		"containers", "spec.containers.*.name",
		"images", "spec.containers.*.image",

		"_statuses", "status.containerStatuses.*.name",
		"ready", "status.containerStatuses.*.ready",
		"restarts", "status.containerStatuses.*.restartCount",
		"waiting", "status.containerStatuses.*.state.waiting.reason",
		"running", "status.containerStatuses.*.state.running.startedAt",
		"exits", "status.containerStatuses.*.state.terminated.exitCode",
		"exitReasons", "status.containerStatuses.*.state.terminated.reason",
		"exitSignals", "status.containerStatuses.*.state.terminated.signal",
		"restarted", "status.containerStatuses.*.lastState.terminated.finishedAt",

		"initNames", "spec.initContainers.*.name",
		"initPolicies", "spec.initContainers.*.restartPolicy",
		"initStatuses", "status.initContainerStatuses.*.name",
		"initReady", "status.initContainerStatuses.*.ready",
		"initStarted", "status.initContainerStatuses.*.started",
		"initRestarts", "status.initContainerStatuses.*.restartCount",
		"initWaiting", "status.initContainerStatuses.*.state.waiting.reason",
		"initExits", "status.initContainerStatuses.*.state.terminated.exitCode",
		"initExitReasons", "status.initContainerStatuses.*.state.terminated.reason",
		"initExitSignals", "status.initContainerStatuses.*.state.terminated.signal",
		"initRestarted", "status.initContainerStatuses.*.lastState.terminated.finishedAt",
	)...)
	return kindTable{
		resource: resource("", "v1", "Pod", "pods", true, "po"),
		fields:   podFields,
		table: newTable(columns("READY", "STATUS", "RESTARTS", "AGE", "IP*", "NODE*", "NOMINATED NODE*", "READINESS GATES*"),
			func(p *podSummary, o *vedette.Object, now time.Time) []string {
				c := p.aggregate()
				return []string{
					fmt.Sprintf("%d/%d", c.ready, c.total), p.status(c), c.restartText(now), ageSince(o.Created, now),
					cmp.Or(p.IP, none), cmp.Or(p.Node, none), cmp.Or(p.Nominated, none), p.readinessGates(),
				}
			}),
	}
}

// podState is the aggregated state of a Pod's containers.
type podState struct {
	reason       string
	ready, total int
	restarts     int
	last         string // time of the last restart in RFC 3339, compared as a string
}

func (c *podState) addRestarts(count int, finished string) {
	c.restarts += count
	c.last = max(c.last, finished)
}

func (c podState) restartText(now time.Time) string {
	if c.restarts == 0 || c.last == "" {
		return strconv.Itoa(c.restarts)
	}
	return fmt.Sprintf("%d (%s ago)", c.restarts, ageSinceTimestamp(c.last, now))
}

// aggregate evaluates init containers first. While they run, other containers do not count.
// When they are done, only restarts of sidecars count.
func (p *podSummary) aggregate() podState {
	c := podState{reason: cmp.Or(p.Reason, p.Phase), total: len(p.Containers)}
	if p.isSchedulingGated() {
		c.reason = "SchedulingGated"
	}
	for _, policy := range p.InitPolicies {
		if policy == "Always" {
			c.total++
		}
	}
	sidecars, initializing := p.addInitContainers(&c)
	if initializing && !p.isTrue("Initialized") {
		return c
	}
	c.restarts, c.last = sidecars.restarts, sidecars.last
	p.addContainers(&c)
	return c
}

func (p *podSummary) isSchedulingGated() bool {
	for i, t := range p.Types {
		if t == "PodScheduled" && elementAt(p.ConditionReasons, i) == "SchedulingGated" {
			return true
		}
	}
	return false
}

// addInitContainers stops at the first init container that is not done.
func (p *podSummary) addInitContainers(c *podState) (sidecars podState, initializing bool) {
	for i, name := range p.InitStatuses {
		c.addRestarts(elementAt(p.InitRestarts, i), elementAt(p.InitRestarted, i))
		sidecar := p.isSidecar(name)
		if sidecar {
			sidecars.addRestarts(elementAt(p.InitRestarts, i), elementAt(p.InitRestarted, i))
		}
		exit := elementAt(p.InitExits, i)
		switch {
		case exit != nil && *exit == 0:
		case sidecar && elementAt(p.InitStarted, i):
			if elementAt(p.InitReady, i) {
				c.ready++
			}
		default:
			c.reason = "Init:" + p.initReason(i)
			return sidecars, true
		}
	}
	return sidecars, false
}

func (p *podSummary) isSidecar(name string) bool {
	for i, n := range p.InitNames {
		if n == name {
			return elementAt(p.InitPolicies, i) == "Always"
		}
	}
	return false
}

func (p *podSummary) initReason(i int) string {
	if exit := elementAt(p.InitExits, i); exit != nil {
		return exitReason(elementAt(p.InitExitReasons, i), elementAt(p.InitExitSignals, i), *exit)
	}
	if waiting := elementAt(p.InitWaiting, i); waiting != "" && waiting != "PodInitializing" {
		return waiting
	}
	return fmt.Sprintf("%d/%d", i, len(p.InitNames))
}

func exitReason(reason string, signal, code int) string {
	switch {
	case reason != "":
		return reason
	case signal != 0:
		return fmt.Sprintf("Signal:%d", signal)
	default:
		return fmt.Sprintf("ExitCode:%d", code)
	}
}

// addContainers iterates from the last container to the first, so that the state of the first
// failing container is shown.
func (p *podSummary) addContainers(c *podState) {
	running, failed := false, ""
	for i := len(p.Ready) - 1; i >= 0; i-- {
		c.addRestarts(elementAt(p.Restarts, i), elementAt(p.Restarted, i))
		waiting, exit := elementAt(p.Waiting, i), elementAt(p.Exits, i)
		switch {
		case waiting != "":
			c.reason = waiting
		case exit != nil:
			c.reason = exitReason(elementAt(p.ExitReasons, i), elementAt(p.ExitSignals, i), *exit)
			if *exit != 0 {
				failed = c.reason
			}
		case p.Ready[i] && elementAt(p.Running, i) != "":
			running = true
			c.ready++
		}
	}
	if c.reason != "Completed" {
		return
	}
	switch {
	case running && p.isTrue("Ready"):
		c.reason = "Running"
	case failed != "":
		c.reason = failed
	case running:
		c.reason = "NotReady"
	}
}

func (p *podSummary) status(c podState) string {
	switch {
	case p.Deleted != "" && p.Reason == "NodeLost":
		return "Unknown"
	case p.Deleted != "" && p.Phase != "Failed" && p.Phase != "Succeeded":
		return "Terminating"
	default:
		return c.reason
	}
}

func (p *podSummary) readinessGates() string {
	if len(p.Gates) == 0 {
		return none
	}
	passed := 0
	for _, gate := range p.Gates {
		if p.isTrue(gate) {
			passed++
		}
	}
	return fmt.Sprintf("%d/%d", passed, len(p.Gates))
}
