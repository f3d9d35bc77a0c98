package config

import (
	"slices"
	"strconv"

	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/configload"
	"github.com/vedette-io/vedette/internal/configreload"
)

// Next loads the configuration again from where c was loaded, as configload.Next. The names that c has by
// default stay, because they must not change while the agent runs.
func (c *Config) Next() (*Config, []configfile.File, error) {
	next, files, err := configload.Next(c, c.location.load, "agent")
	if err != nil {
		return nil, files, err
	}
	if !next.Report.IsSet("agentId") {
		next.AgentID = c.AgentID
	}
	if !next.Report.IsSet("zoneId") {
		next.ZoneID = c.ZoneID
	}
	return next, files, nil
}

// Adopt makes c the successor of the configuration whose Next it is, which must not be used anymore. If
// accounts were rejected, those before stay in effect, and so do the files with their secrets.
func (c *Config) Adopt() error {
	if len(c.RejectedAccounts) > 0 {
		return c.AdoptRetaining()
	}
	return c.Loaded.Adopt()
}

// reloadable are the keys that a running agent reloads.
var reloadable = configreload.Reloadable{"logging.level", "kubernetes.accounts", "kubernetes.noProxy", "secrets.", "spring."}

// Reloadable returns the keys that a running agent reloads.
func (c *Config) Reloadable() configreload.Reloadable { return reloadable }

// NeedRestart returns the keys whose values differ from before and which count from the next start on
// only. Secrets are not compared; clouddriver.auth.token is reloaded if there was one before.
func (c *Config) NeedRestart(before *Config) []string {
	return reloadable.NeedRestart(c.comparable(), before.comparable())
}

// comparable returns the effective settings. Secrets are masked. Of the token that agents show to a
// proxy only counts whether there is one.
func (c *Config) comparable() []configfile.KeyValue {
	hasToken := strconv.FormatBool(c.Clouddriver.Auth.Token.Reveal() != "")
	settings := slices.DeleteFunc(c.Effective(), func(kv configfile.KeyValue) bool { return kv.Key == tokenKey })
	return append(settings, configfile.KeyValue{Key: tokenKey, Value: hasToken})
}

const tokenKey = "clouddriver.auth.token"
