package infrastructure

import (
	"iter"
	"strings"
)

// HealthState is the state of an instance or of one part of it, as Spinnaker writes it.
type HealthState string

// The states that instances on Kubernetes have.
const (
	Up      HealthState = "Up"
	Down    HealthState = "Down"
	Unknown HealthState = "Unknown"
)

// Instance is a Pod.
type Instance struct {
	*Object
	State HealthState
}

// Health is the state of a Pod, or of one of its containers.
type Health struct {
	Container string // empty for the Pod itself
	State     HealthState
}

func newInstance(pod *Object) Instance { return Instance{pod, overallState(pod)} }

// Health iterates over the Pod, and then over its containers. A Pod without a status has none.
func (i Instance) Health() iter.Seq[Health] { return healthOf(i.Object) }

func healthOf(pod *Object) iter.Seq[Health] {
	return func(yield func(Health) bool) {
		if pod.Phase == "" && len(pod.Containers) == 0 {
			return
		}
		if !yield(Health{"", phaseState(pod.Phase)}) {
			return
		}
		for _, c := range pod.Containers {
			if !yield(Health{c.Name, readyState(c.Ready)}) {
				return
			}
		}
	}
}

// phaseState maps a phase. A Pod that has ended is in an unknown state, like in Clouddriver.
func phaseState(phase string) HealthState {
	switch {
	case strings.EqualFold(phase, "pending"):
		return Down
	case strings.EqualFold(phase, "running"):
		return Up
	}
	return Unknown
}

func readyState(ready bool) HealthState {
	if ready {
		return Up
	}
	return Down
}

// overallState is Down if any part is Down, and otherwise Up if any part is Up.
func overallState(pod *Object) HealthState {
	state := Unknown
	for h := range healthOf(pod) {
		switch h.State {
		case Down:
			return Down
		case Up:
			state = Up
		}
	}
	return state
}

// Add adds the counts of another server group.
func (c *InstanceCounts) Add(other InstanceCounts) {
	c.Total += other.Total
	c.Up += other.Up
	c.Down += other.Down
	c.Unknown += other.Unknown
}

func (c *InstanceCounts) add(i Instance) {
	c.Total++
	switch i.State {
	case Up:
		c.Up++
	case Down:
		c.Down++
	default:
		c.Unknown++
	}
}
