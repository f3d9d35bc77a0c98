// Package dataset fills a store with the accounts, applications and objects of a fleet, for
// benchmarks and tests of what reads them. Objects pass the agent's redaction and the store's
// commits, so that every column has what a real agent would have reported.
//
// Plain INSERTs would be faster, as a million commits take some minutes, but each new column or relation would have to be
// filled twice, and a wrong copy would measure something that no server has.
package dataset

import (
	"fmt"

	"github.com/vedette-io/vedette"
)

// Dataset describes a fleet. The same Dataset has the same objects each time.
type Dataset struct {
	Accounts int
	Objects  int // of all accounts, including those of Applications
	// Applications have a given size. Their objects are in the first accounts.
	Applications []Application
	// OtherApplications is the number of applications that share the remaining objects.
	OtherApplications int
}

// Application is an application of a given size.
type Application struct {
	Name            string
	Workloads       int // each has a Deployment, three ReplicaSets, a Service and a ConfigMap
	PodsPerWorkload int
	Accounts        int // over which the workloads are spread evenly
}

// The applications of Mixed.
const (
	BigApplication   = "bigshop"
	SmallApplication = "smallshop"
)

// Mixed has one application of 1,000 workloads and 5,000 Pods, and one of 20 Pods, among 100,000
// objects in 50 accounts.
func Mixed() Dataset {
	return Dataset{Accounts: 50, Objects: 100_000, OtherApplications: 1000, Applications: []Application{
		{Name: BigApplication, Workloads: 1000, PodsPerWorkload: 5, Accounts: 10},
		{Name: SmallApplication, Workloads: 4, PodsPerWorkload: 5, Accounts: 1},
	}}
}

// Large has 20,000 applications and 1,000,000 objects in 5,000 accounts.
func Large() Dataset {
	return Dataset{Accounts: 5000, Objects: 1_000_000, OtherApplications: 19_999, Applications: []Application{
		{Name: SmallApplication, Workloads: 4, PodsPerWorkload: 5, Accounts: 1},
	}}
}

// Scale returns the dataset with all numbers divided by divisor, but no number below 1.
func (d Dataset) Scale(divisor int) Dataset {
	scaled := Dataset{Accounts: max(1, d.Accounts/divisor), Objects: max(1, d.Objects/divisor),
		OtherApplications: max(1, d.OtherApplications/divisor)}
	for _, a := range d.Applications {
		a.Workloads, a.Accounts = max(1, a.Workloads/divisor), max(1, a.Accounts/divisor)
		scaled.Applications = append(scaled.Applications, a)
	}
	return scaled
}

// AccountName returns the name of the i-th account.
func AccountName(i int) vedette.AccountName { return vedette.AccountName(fmt.Sprintf("prod-%05d", i)) }

// Account returns the i-th account as its agent registers it.
func (d Dataset) Account(i int) vedette.Account {
	name := AccountName(i)
	return vedette.Account{Name: name, Namespaces: []string{"default", "kube-system"},
		Cluster: vedette.Cluster{UID: fmt.Sprintf("uid-%d", i), Host: fmt.Sprintf("https://%s.example.com:6443", name), Version: "v1.36.3"}}
}

// objectsOf returns the number of objects of the i-th account.
func (d Dataset) objectsOf(i int) int { return share(d.Objects, d.Accounts, i) }

// workloadsOf returns how many workloads of an application are in the i-th account.
func (a Application) workloadsOf(i int) int {
	if i >= a.Accounts {
		return 0
	}
	return share(a.Workloads, a.Accounts, i)
}

// share returns the i-th of parts shares of total. The first shares are larger if total cannot be
// divided.
func share(total, parts, i int) int {
	n := total / parts
	if i < total%parts {
		n++
	}
	return n
}
