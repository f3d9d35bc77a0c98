package main

import (
	"log/slog"
	"strings"

	"github.com/vedette-io/vedette/agent/bearer"
	"github.com/vedette-io/vedette/agent/config"
	"github.com/vedette-io/vedette/agent/uplink"
	"github.com/vedette-io/vedette/internal/command"
)

// setToken sets what supplies the bearer token for a proxy in front of the server, if any.
func setToken(cfg *uplink.Config, auth config.Auth, log *slog.Logger) {
	switch {
	case auth.Token.Reveal() != "":
		cfg.Token = bearer.NewVariable(tokenOf(auth))
	case auth.TokenCommand.Command != "":
		cfg.Token = bearer.NewCommand(tokenCommand(auth.TokenCommand), log)
	}
}

func tokenOf(auth config.Auth) string { return strings.TrimSpace(auth.Token.Reveal()) }

func tokenCommand(c config.TokenCommand) bearer.Config {
	program := command.Command{Program: c.Command}
	for _, arg := range c.Args {
		program.Args, program.Secrets = append(program.Args, arg.Reveal()), append(program.Secrets, arg.Reveal())
	}
	return bearer.Config{Command: program, Raw: strings.EqualFold(c.Format, "raw"), RefreshInterval: c.RefreshInterval}
}
