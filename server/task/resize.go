package task

import "context"

// resizeOp is scale in the words of generic stages: resizeServerGroup.
type resizeOp struct {
	commonFields
	ServerGroupName lenientString `json:"serverGroupName"` // "replicaSet web-v003"
	Region          lenientString `json:"region"`          // the namespace
	Capacity        *struct {
		Desired optionalInt `json:"desired"`
		Min     optionalInt `json:"min"` // only their form is checked
		Max     optionalInt `json:"max"`
	} `json:"capacity"`
}

func (d *resizeOp) target() (objectRef, error) {
	return newObjectRef(string(d.ServerGroupName), cleanNamespace(d.Region))
}

func (d *resizeOp) check(v *validation) {
	if v.checkTarget(d.target()) && (d.Capacity == nil || d.Capacity.Desired.n == nil) {
		v.reject("capacity", "empty")
	}
}

func (d *resizeOp) run(ctx context.Context, t *opContext) (*Result, error) {
	target, err := d.target()
	if err != nil {
		return nil, err
	}
	t.reportf("Starting resize operation...")
	t.reportf("Looking up resource properties...")
	if err := t.requireKind(target, "resize", "deployment", "replicaSet", "statefulSet", "daemonSet"); err != nil {
		return nil, err
	}
	t.reportf("Calling resize operation...")
	return nil, t.setReplicas(ctx, target, *d.Capacity.Desired.n)
}
