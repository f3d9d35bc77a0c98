package server

import (
	"github.com/vedette-io/vedette/server/dispatch"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/task"
)

// newTasks returns the runner of Spinnaker's operations.
func (s *Server) newTasks(st *store.Store, dispatcher *dispatch.Dispatcher) *task.Tasks {
	cfg := s.cfg.Tasks
	cfg.Server, cfg.Store, cfg.Accounts, cfg.Dispatch, cfg.Log = s.cfg.ID, st, st, dispatcher, s.log
	return task.New(cfg)
}
