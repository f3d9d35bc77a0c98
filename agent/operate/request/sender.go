package request

import "github.com/vedette-io/vedette"

// Sender sends the requests of one operation. Only its methods send requests; a Client has none that do.
// So the compiler requires every request to be sent with the options of its operation.
//
// The options are not values of the context, because code that starts from a new context
// would lose them without an error, and a dry run would change the cluster.
type Sender struct {
	*Client
	Operation vedette.Operation
	Warnings  *Warnings
	// FieldValidation is the parameter of that name of requests that carry a manifest; empty
	// for none.
	FieldValidation string
	control         Control
	// dryRun adds dryRun=All to every request that is not read-only.
	dryRun  bool
	lost    *lostTracker
	changes *changeTracker
	objects *objectChanges
}

// NewSender returns the Sender of an operation.
func (c *Client) NewSender(op vedette.Operation, control Control) *Sender {
	return &Sender{Client: c, Operation: op, Warnings: &Warnings{}, control: control, dryRun: op.DryRun,
		lost: &lostTracker{}, changes: &changeTracker{}, objects: &objectChanges{}}
}

// AsDryRun returns a Sender of the same operation whose requests change nothing. It shares the
// warnings and the lost answers.
func (s *Sender) AsDryRun() *Sender {
	dry := *s
	dry.dryRun = true
	return &dry
}

// IsDryRun reports whether the requests change nothing.
func (s *Sender) IsDryRun() bool { return s.dryRun }
