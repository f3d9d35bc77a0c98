package task

import "context"

// resize is resizeServerGroup: scale, in the words of generic stages.
type resize struct {
	common
	ServerGroupName text `json:"serverGroupName"` // "replicaSet web-v003"
	Region          text `json:"region"`          // the namespace
	Capacity        *struct {
		Desired number `json:"desired"`
	} `json:"capacity"`
}

func (d *resize) target() (target, error) {
	return newTarget(string(d.ServerGroupName), namespaceOf(d.Region))
}

func (d *resize) check(v *validation) {
	if v.target(d.target()) && (d.Capacity == nil || d.Capacity.Desired.n == nil) {
		v.reject("capacity", "empty")
	}
}

func (d *resize) run(ctx context.Context, t *turn) (*Result, error) {
	target, err := d.target()
	if err != nil {
		return nil, err
	}
	t.say("Starting resize operation...")
	t.say("Looking up resource properties...")
	if err := t.scales(target, "resize", "deployment", "replicaSet", "statefulSet", "daemonSet"); err != nil {
		return nil, err
	}
	t.say("Calling resize operation...")
	return nil, t.scale(ctx, target, *d.Capacity.Desired.n)
}
