package settings

import "github.com/vedette-io/vedette/internal/logging"

// Logging configures the log. If a file cannot be written, its lines go to standard error until it can.
type Logging struct{ logging.Config }
