package dataset

import (
	"errors"
	"fmt"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/redact"
	"github.com/vedette-io/vedette/server/views"
	"github.com/vedette-io/vedette/test/corpus"
)

// Changer changes one Pod of an application again and again.
type Changer struct {
	Account  vedette.AccountName
	pod      vedette.Object
	corpus   *corpus.Corpus
	redactor *redact.Redactor
}

var errFound = errors.New("found")

// NewChanger returns a Changer of a Pod of one of the dataset's Applications.
func (d Dataset) NewChanger(application string) (*Changer, error) {
	redactor, err := redact.New(redact.Config{}, views.Projections(), vedette.HeaderAnnotations)
	if err != nil {
		return nil, err
	}
	c := &Changer{Account: AccountName(0), redactor: redactor, corpus: corpus.New(1)}
	g := generator{dataset: d, corpus: c.corpus, redactor: redactor, left: d.objectsOf(0), yield: func(o vedette.Object) error {
		if o.Kind.Name != "Pod" || vedette.MonikerOf(o.Key, o.Annotations).App != application {
			return nil
		}
		c.pod = o
		return errFound
	}}
	if err := g.run(); !errors.Is(err, errFound) {
		return nil, errors.Join(err, fmt.Errorf("account %s has no pod of application %s", c.Account, application))
	}
	return c, nil
}

// Next returns the Pod after another status update.
func (c *Changer) Next() (vedette.Object, error) {
	c.pod = c.corpus.Touch(c.pod)
	return redactObject(c.redactor, c.pod)
}
