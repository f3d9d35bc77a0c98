package dataset

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/redact"
	"github.com/vedette-io/vedette/server/tables"
	"github.com/vedette-io/vedette/test/corpus"
)

// Changer changes one object of an application again and again.
type Changer struct {
	Account  vedette.AccountName
	object   vedette.Object
	corpus   *corpus.Corpus
	redactor *redact.Redactor
}

var errFound = errors.New("found")

// NewChanger returns a Changer of a Pod of one of the dataset's Applications.
func (d Dataset) NewChanger(application string) (*Changer, error) {
	return d.newChanger(application, "Pod")
}

// ClusterChanger moves a Deployment of an application from one cluster to the next, so that the list
// of all applications changes.
type ClusterChanger struct {
	Changer
	moves int
}

// NewClusterChanger returns a ClusterChanger of one of the dataset's Applications.
func (d Dataset) NewClusterChanger(application string) (*ClusterChanger, error) {
	c, err := d.newChanger(application, "Deployment")
	if err != nil {
		return nil, err
	}
	return &ClusterChanger{Changer: *c}, nil
}

// Next returns the Deployment in another cluster than before.
func (c *ClusterChanger) Next() (vedette.Object, error) {
	c.object = c.corpus.Touch(c.object)
	var o map[string]any
	if err := json.Unmarshal(c.object.Body, &o); err != nil {
		return vedette.Object{}, fmt.Errorf("parse %s: %w", c.object.Key, err)
	}
	c.moves++
	metadata, _ := o["metadata"].(map[string]any)
	annotations, ok := metadata["annotations"].(map[string]any)
	if !ok {
		return vedette.Object{}, fmt.Errorf("%s has no annotations", c.object.Key)
	}
	annotations["moniker.spinnaker.io/cluster"] = fmt.Sprint("deployment bench-", c.moves)
	moved := c.object
	var err error
	if moved.Body, err = json.Marshal(o); err != nil {
		return vedette.Object{}, err
	}
	return redactObject(c.redactor, moved)
}

func (d Dataset) newChanger(application, kind string) (*Changer, error) {
	redactor, err := redact.New(redact.Config{}, tables.Projections(), vedette.HeaderAnnotations)
	if err != nil {
		return nil, err
	}
	c := &Changer{Account: AccountName(0), redactor: redactor, corpus: corpus.New(1)}
	g := generator{dataset: d, corpus: c.corpus, redactor: redactor, left: d.objectsOf(0), yield: func(o vedette.Object) error {
		if o.Kind.Name != kind || vedette.MonikerOf(o.Key, o.Annotations).App != application {
			return nil
		}
		c.object = o
		return errFound
	}}
	if err := g.run(); !errors.Is(err, errFound) {
		return nil, errors.Join(err, fmt.Errorf("account %s has no %s of application %s", c.Account, kind, application))
	}
	return c, nil
}

// Next returns the Pod after another status update.
func (c *Changer) Next() (vedette.Object, error) {
	c.object = c.corpus.Touch(c.object)
	return redactObject(c.redactor, c.object)
}
