package front50

import (
	"context"

	"github.com/vedette-io/vedette"
)

// Probe asks Front50 once for a project.
func (c *Client) Probe(ctx context.Context) error {
	if _, err := c.SearchProjects(ctx, nil, 1, nil); err != nil {
		return vedette.Errorf(vedette.Unavailable, "%w: check services.front50.baseUrl, and that Front50 runs", err)
	}
	return nil
}
