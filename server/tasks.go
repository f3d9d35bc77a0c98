package server

import (
	"log/slog"

	"github.com/vedette-io/vedette/server/metrics"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/task"
)

// newTasks returns the runner of Spinnaker's operations.
func (s *Server) newTasks(st *store.Store, dispatcher *metrics.Dispatcher, log *slog.Logger) *task.Tasks {
	cfg := s.cfg.Tasks
	cfg.Server, cfg.Store, cfg.Accounts, cfg.Dispatch, cfg.Log = s.cfg.ID, st, st, dispatcher, log
	cfg.OnEnd = s.cfg.Metrics.TaskEnded
	return task.New(cfg)
}
