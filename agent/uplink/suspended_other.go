//go:build !linux

package uplink

import "time"

// suspended returns 0, because only Linux says for how long the machine has been suspended.
func suspended() time.Duration { return 0 }
