package config

import (
	"strings"

	"github.com/vedette-io/vedette/agent/bearer"
)

// checkAuth checks what the agent presents to a proxy in front of the server.
func (c *Config) checkAuth(a Auth) {
	const token, program = "clouddriver.auth.token", "clouddriver.auth.tokenCommand"
	c.checkOneOf(program+".format", a.TokenCommand.Format, "json", "raw")
	c.checkNotNegative(program+".refreshIntervalSeconds", a.TokenCommand.RefreshIntervalSeconds)
	if text := a.Token.Reveal(); text != "" {
		if err := bearer.Check(strings.TrimSpace(text)); err != nil {
			c.addProblem(token, "%q cannot be sent: %s", token, err)
		}
	}
	switch {
	case a.TokenCommand.Command != "" && a.Token.Reveal() != "":
		c.addNotice(program, token+" is set, so "+program+" is not called")
	case a.TokenCommand.Command == "" && len(a.TokenCommand.Args) > 0:
		c.addNotice(program+".args", program+".args has no effect without "+program+".command")
	}
}
