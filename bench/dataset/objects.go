package dataset

import (
	"fmt"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/redact"
	"github.com/vedette-io/vedette/test/corpus"
)

// generator generates the objects of one account.
type generator struct {
	dataset  Dataset
	account  int
	corpus   *corpus.Corpus
	redactor *redact.Redactor
	yield    func(vedette.Object) error
	left     int // objects that are still to be generated
}

// run calls yield for each object of the account.
func (g *generator) run() error {
	for _, a := range g.dataset.Applications {
		for n := range a.workloadsOf(g.account) {
			if err := g.workload(a.Name, fmt.Sprintf("%s-%04d", a.Name, n), a.PodsPerWorkload); err != nil {
				return err
			}
		}
	}
	return g.others()
}

// others fills the account with workloads of its share of the other applications, of 1 to 8 Pods
// each.
func (g *generator) others() error {
	applications := max(1, share(g.dataset.OtherApplications, g.dataset.Accounts, g.account))
	for n := 0; g.left > 0; n++ {
		application := fmt.Sprintf("app%05d%03d", g.account, n%applications)
		if err := g.workload(application, fmt.Sprintf("%s-%03d", application, n/applications), 1+n%8); err != nil {
			return err
		}
	}
	return nil
}

// workload generates the objects of a workload, or its first if the account is full.
func (g *generator) workload(application, name string, pods int) error {
	items := g.corpus.Workload(application, name, pods)
	for _, item := range items[:min(len(items), g.left)] {
		object, err := g.redact(item.Object)
		if err != nil {
			return err
		}
		if err := g.yield(object); err != nil {
			return err
		}
		g.left--
	}
	return nil
}

// redact returns an object as an agent reports it.
func (g *generator) redact(o vedette.Object) (vedette.Object, error) {
	return redactObject(g.redactor, o)
}

func redactObject(r *redact.Redactor, o vedette.Object) (vedette.Object, error) {
	redacted, _, err := r.Object(nil, vedette.Resource{}, o.Body)
	if err != nil {
		return redacted, fmt.Errorf("redact %s: %w", o.Key, err)
	}
	return redacted, nil
}
