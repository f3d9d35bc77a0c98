// Package attributes describes what Clouddriver's list views show of an object. The store keeps
// it in one narrow column, so that a list of thousands of objects needs neither bodies nor JSON.
// Clouddriver has the same word for the data of its cache.
//
// The server derives attributes from header and summary when it writes a row, before it locks the account. No body is parsed,
// and no relation to other objects is stored: an owner is a uid in a column with an index, a selector is part of the
// Service's own attributes. So the order in which objects arrive does not matter, and nothing must be repaired when one of
// them is missing. Views join when they read.
//
// It is one value of some 20 to 120 bytes and not a column per fact: each column would cost a byte or more where it is empty,
// and half a microsecond per row where it is read. A read returns account and kind as one number, and attributes, uid and
// owner as one value: with SQLite, an application of 6,500 objects took 15 ms as nine values and 9 ms as four, without
// decoding. Columns of their own have only what statements select by: owner and cluster. MySQL has no indexes over a part of
// the rows, so the index of owners is partial elsewhere only.
//
// Nothing is filled in afterwards. The projections and Version are part of an account's shape, so agents report all objects
// again after an upgrade that changes them; until then readers get rows with what columns tell. Nothing is kept twice: fields
// of summaries whose names begin with _ are projected for attributes only, and the store removes them from the summary.
//
// Measured with 20,000 objects, without and with attributes: 936 and 1,012 bytes per object in SQLite, 1,013 and 1,097 in
// PostgreSQL, 1,386 and 1,527 in MariaDB; 97 and 103 µs of processor time per inserted row with SQLite, 73 to 78 and 78 to 84
// µs with PostgreSQL.
//
// Planners need help. PostgreSQL joins by a lateral subquery and takes lists of owners from a subquery, because before its
// first statistics it read the whole table or the keys of an account for each owner (95 ms instead of 15). A search stops at
// its limit, because it reads in the order of the key and names no accounts unless the caller does (3 ms instead of 78).
package attributes

import "github.com/vedette-io/vedette"

// Attributes are the attributes of one object besides its key and its moniker.
type Attributes struct {
	APIVersion string
	Created    int64             // creationTimestamp in seconds since 1970; 0 if it has none
	Labels     map[string]string // not encoded for Pods, whose workload's label set the store has
	Owner      vedette.Owner     // the controller, or else the first owner; zero if it has none

	// Ignored reports whether the annotation caching.spinnaker.io/ignore hides the object from
	// views.
	Ignored bool
	// Managed reports whether Spinnaker deployed the object: it has the annotation
	// moniker.spinnaker.io/application.
	Managed bool

	LoadBalancers  []string          // full names in the annotation traffic.spinnaker.io/load-balancers
	Replicas       int64             // spec.replicas of a workload
	Images         []string          // of the containers and init containers of a workload's template, each once
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
