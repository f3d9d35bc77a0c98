package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"

	"github.com/vedette-io/vedette/test/controlplane"
)

// slowLink is how many bytes per second the agent can send while the account moves: as slow as a batch allows that must arrive
// before the server takes the agent for lost.
const slowLink = 16 << 10

// The transfer of ballast over the slow link takes twenty minutes, which is longer than a walk and the actions on a busy machine.
const (
	ballastObjects = 400
	ballastBytes   = 48 << 10 // of each object, which cannot be compressed
)

// createBallast creates objects that are of no use but to be transferred.
func (env *environment) createBallast(ctx context.Context) error {
	for i := range ballastObjects {
		data := make([]byte, ballastBytes)
		_, _ = rand.Read(data) // never fails
		object := controlplane.Object{"apiVersion": "deck.example.com/v1", "kind": "Ballast", "data": base64.StdEncoding.EncodeToString(data),
			"metadata": controlplane.Object{"name": fmt.Sprintf("ballast-%d", i)}}
		if err := env.plane.Create(ctx, "/apis/deck.example.com/v1/ballasts", object); err != nil {
			return err
		}
	}
	return nil
}
