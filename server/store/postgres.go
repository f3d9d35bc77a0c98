package store

import "context"

func connectPostgres(ctx context.Context, s *Store, cfg Config) error { panic("next") }
func connectMySQL(ctx context.Context, s *Store, cfg Config) error    { panic("next") }
