package config

import (
	"net"
	"strconv"

	"github.com/vedette-io/vedette/server/discover"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// Peers configures the port for other servers that share the database. Servers prove by keys in the database who they are, so it needs no
// certificates.
type Peers struct {
	// Port for other servers. It is open if kubesvc.cluster is not local.
	Port int `config:"port" format:"port" default:"7003"`
	// Address to listen on; * for all. Default: all addresses.
	Address string `config:"address"`
	// Host name or address under which other servers reach this one, with a port if it differs. Default: the address of this machine, or of
	// its pod.
	Advertise string `config:"advertise"`
	// Take operations and results of other servers of the same database over REST, too, as the predecessor's plugin did: POST
	// /armory/agent/operations and /armory/agent/operationresults. Servers pass operations on at server.peers.port, so that they do
	// not need it. Results are sent to the other server's REST API: encrypted if that has server.ssl. No effect with kubesvc.cluster: local.
	RESTOperations bool `config:"restOperations"`
}

// SharesDatabase reports whether other servers may use the database at the same time. A file of SQLite has one server.
func (c *Config) SharesDatabase() bool {
	_, isFile := sqldb.FilePath(c.Database().Reveal())
	return c.Kubesvc.mode() != discover.ModeLocal && !isFile
}

// PeersListen returns the address of the port for other servers.
func (c *Config) PeersListen() string {
	host := c.Server.Peers.Address
	if host == "*" {
		host = ""
	}
	return net.JoinHostPort(host, strconv.Itoa(c.Server.Peers.Port))
}

// fileWarning warns that servers do not share the database that is configured.
func (c *Config) fileWarning() string {
	if c.Kubesvc.mode() == discover.ModeLocal || c.SharesDatabase() {
		return ""
	}
	return "kubesvc.cluster is " + c.Kubesvc.Cluster + ", but the embedded database is for one server: this server runs alone. " +
		"Set sql.url to a PostgreSQL, MariaDB or MySQL database to run several"
}
