package clouddriver

import (
	"encoding/json"
	"fmt"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/manifest"
)

func artifactsOf(kind vedette.Kind, body []byte) ([]manifest.Artifact, error) {
	var m manifest.Manifest
	if err := json.Unmarshal(body, &m); err != nil {
		return nil, fmt.Errorf("find the artifacts of a %s: %w", kind, err)
	}
	return manifest.FindArtifacts(kind, m), nil
}
