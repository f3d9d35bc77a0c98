package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"

	"github.com/vedette-io/vedette/test/controlplane"
)

const (
	ballastObjects = 120
	ballastBytes   = 16 << 10 // of each object, which cannot be compressed
)

// createBallast creates objects whose only use is that their transfer over a slow link takes some minutes.
func (env *environment) createBallast(ctx context.Context) error {
	namespace := controlplane.Object{"apiVersion": "v1", "kind": "Namespace", "metadata": controlplane.Object{"name": "ballast"}}
	if err := env.plane.Create(ctx, "/api/v1/namespaces", namespace); err != nil {
		return err
	}
	for i := range ballastObjects {
		data := make([]byte, ballastBytes)
		_, _ = rand.Read(data) // never fails
		object := controlplane.Object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": controlplane.Object{"name": fmt.Sprintf("ballast-%d", i)},
			"data": controlplane.Object{"data": base64.StdEncoding.EncodeToString(data)}}
		if err := env.plane.Create(ctx, "/api/v1/namespaces/ballast/configmaps", object); err != nil {
			return err
		}
	}
	return nil
}
