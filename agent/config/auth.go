package config

import (
	"strings"

	"github.com/vedette-io/vedette/agent/bearer"
	"github.com/vedette-io/vedette/internal/configfile"
)

// check checks what the agent presents to a proxy in front of the server.
func (a Auth) check(c configfile.Checker) {
	if text := a.Token.Reveal(); text != "" {
		if err := bearer.Check(strings.TrimSpace(text)); err != nil {
			c.Problem("token", " cannot be sent: %s", err)
		}
	}
	switch {
	case a.TokenCommand.Command != "" && a.Token.Reveal() != "":
		c.Notice("tokenCommand", "%s is set, so %s is not called", c.Path("token"), c.Path("tokenCommand"))
	case a.TokenCommand.Command == "" && len(a.TokenCommand.Args) > 0:
		c.Notice("tokenCommand.args", "%s has no effect without %s", c.Path("tokenCommand.args"), c.Path("tokenCommand.command"))
	}
}
