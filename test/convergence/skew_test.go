package convergence

import (
	"strings"
	"time"

	"github.com/vedette-io/vedette/test/clockskew"
)

// skewEnv returns the environment that skews a program's clock. The clocks of agents are ahead and
// behind in turn; the server's changes direction at each start.
func skewEnv(offset time.Duration, name string, start int) string {
	ahead := start%2 == 0
	if strings.HasPrefix(name, "a") {
		ahead = name[len(name)-1]%2 == 0
	}
	if !ahead {
		offset = -offset
	}
	return clockskew.Env(offset)
}
