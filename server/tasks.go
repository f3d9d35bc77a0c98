package server

import (
	"github.com/vedette-io/vedette/server/metrics"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/task"
)

// newTasks returns the runner of Spinnaker's operations.
func (s *Server) newTasks(st *store.Store, dispatcher *metrics.Dispatcher) *task.Tasks {
	cfg := s.cfg.Tasks
	cfg.Server, cfg.Store, cfg.Accounts, cfg.Dispatch, cfg.Log = s.cfg.ID, st, st, dispatcher, s.log
	cfg.OnEnd = s.cfg.Metrics.TaskEnded
	return task.New(cfg)
}
