package discover

import "time"

// Timing is what tests shorten.
type Timing struct {
	Request, List, Watch, Idle, Lasting, Pause, Review, Empty time.Duration
}

// WithTiming returns a configuration with other times. Zero values mean the defaults.
func (c KubernetesConfig) WithTiming(t Timing) KubernetesConfig {
	c.timing = timing{t.Request, t.List, t.Watch, t.Idle, t.Lasting, t.Pause, t.Review, t.Empty}
	return c
}
