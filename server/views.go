package server

import (
	"net/http"

	"github.com/vedette-io/vedette/server/ingest"
	"github.com/vedette-io/vedette/server/roster"
	"github.com/vedette-io/vedette/server/store"
)

// Views configures what readers see.
type Views struct{}

func (s *Server) views(st *store.Store, hub *ingest.Hub, seats *roster.Roster) http.Handler {
	return http.NewServeMux()
}
