// Package attributes describes what Clouddriver's list views show of an object. The store keeps
// it in one narrow column, so that a list of thousands of objects needs neither bodies nor JSON.
// Clouddriver has the same word for the data of its cache.
package attributes

import "github.com/vedette-io/vedette"

// Attributes are the attributes of one object besides its key and its moniker.
type Attributes struct {
	APIVersion string
	Created    int64             // creationTimestamp in seconds since 1970; 0 if it has none
	Labels     map[string]string // nil for Pods, because no list shows their labels
	Owner      vedette.Owner     // the controller, or else the first owner; zero if it has none

	// Ignored reports whether the annotation caching.spinnaker.io/ignore hides the object from
	// views.
	Ignored bool
	// Managed reports whether Spinnaker deployed the object: it has the annotation
	// moniker.spinnaker.io/application.
	Managed bool

	LoadBalancers  []string          // full names in the annotation traffic.spinnaker.io/load-balancers
	Replicas       int64             // spec.replicas of a workload
	Images         []string          // of the containers of a workload's template, or of a Pod
	TemplateLabels map[string]string // labels of a workload's template
	Selector       map[string]string // spec.selector of a Service
	// Services are the names of the Services that an object refers to: the backends of an
	// Ingress, and the serviceName of a StatefulSet.
	Services   []string
	Phase      string      // status.phase of a Pod
	Containers []Container // the container statuses of a Pod
}

// Container is the state of one container of a Pod.
type Container struct {
	Name  string
	Ready bool
}
