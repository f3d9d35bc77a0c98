// Package connect creates the REST client of the server that a command's flags, the environment
// and the file of contexts name.
package connect

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/contexts"
	"github.com/vedette-io/vedette/internal/client"
)

// The flags that commands of `vedette config` read too.
const (
	ServerFlag    = "server"
	ContextFlag   = "context"
	tokenFileFlag = "token-file"
	insecureFlag  = "insecure-skip-tls-verify"
)

// UserVariable is the environment variable of the user to act as.
const UserVariable = "VEDETTE_USER"

// The environment variables that choose a server.
const (
	serverVariable  = "VEDETTE_SERVER"
	contextVariable = "VEDETTE_CONTEXT"
)

// textSetting is a flag for a field of a context, and the environment variable that applies
// without the flag.
type textSetting struct {
	flag, variable, usage string
	field                 func(*contexts.Context) *string
}

var textSettings = []textSetting{
	{"cacert", "VEDETTE_CACERT", "PEM file with the authorities of the server's certificate.",
		func(c *contexts.Context) *string { return &c.CACert }},
	{"cert", "VEDETTE_CERT", "PEM file with a client certificate and its intermediates.",
		func(c *contexts.Context) *string { return &c.Cert }},
	{"key", "VEDETTE_KEY", "PEM file with the private key. Defaults to the file of --cert.",
		func(c *contexts.Context) *string { return &c.Key }},
	{tokenFileFlag, "VEDETTE_TOKEN_FILE", "File with a bearer token, for a proxy in front of the server.",
		func(c *contexts.Context) *string { return &c.TokenFile }},
	{"user", UserVariable, "Spinnaker user to act as.",
		func(c *contexts.Context) *string { return &c.User }},
	{"user-accounts", "VEDETTE_USER_ACCOUNTS", "Comma-separated restricted accounts that the user may change; used by servers without Fiat.",
		func(c *contexts.Context) *string { return &c.UserAccounts }},
}

// AddFlags adds the flags for the server and for the user.
func AddFlags(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.String(ServerFlag, "", "Address of the server. Defaults to "+serverVariable+", then to the server of the context, then to "+
		client.DefaultServer+".")
	flags.String(ContextFlag, "", "Context to use, see `vedette config`. Defaults to "+contextVariable+", then to the current context.")
	for _, s := range textSettings {
		flags.String(s.flag, "", s.usage+" Defaults to "+s.variable+", then to the context.")
	}
	flags.Bool(insecureFlag, false, "Accept any certificate of the server. Anyone on the network path can then read and change what is sent.")
}

// Variables returns the names of the environment variables of the command line.
func Variables() []string {
	names := []string{serverVariable, contextVariable, contexts.PathVariable}
	for _, s := range textSettings {
		names = append(names, s.variable)
	}
	return names
}

// Client returns a client of the server that a command's flags, the environment or a context name.
func Client(cmd *cobra.Command) (*client.Client, error) {
	settings, err := resolve(cmd)
	if err != nil {
		return nil, err
	}
	options, err := settings.Options()
	if err != nil {
		return nil, err
	}
	return client.NewWithOptions(options)
}

// The flags that choose namespaces.
const (
	namespaceFlag     = "namespace"
	allNamespacesFlag = "all-namespaces"
)

// UseNamespace gives a command the namespace of the context, unless it has a flag about namespaces, as kubectl does. Without one
// in the context, the command's own default applies.
func UseNamespace(cmd *cobra.Command) error {
	flag := cmd.Flags().Lookup(namespaceFlag)
	if flag == nil || flag.Changed || cmd.Flags().Changed(allNamespacesFlag) {
		return nil
	}
	settings, err := chooseServer(cmd)
	if err != nil || settings.Namespace == "" {
		return err
	}
	if err := flag.Value.Set(settings.Namespace); err != nil {
		return vedette.Errorf(vedette.Invalid, "the namespace of the context: %w", err)
	}
	return nil
}

// resolve returns the settings in effect, as a context.
func resolve(cmd *cobra.Command) (contexts.Context, error) {
	settings, err := chooseServer(cmd)
	if err != nil {
		return settings, err
	}
	if err := ApplyFlags(cmd, &settings, os.Getenv); err != nil {
		return settings, err
	}
	return settings, nil
}

// chooseServer returns the context to use, or only a server. A server that is named by its address
// gets nothing of a context, because its token and its certificate are for another one.
func chooseServer(cmd *cobra.Command) (contexts.Context, error) {
	server, err := cmd.Flags().GetString(ServerFlag)
	if err != nil {
		return contexts.Context{}, err
	}
	name, err := cmd.Flags().GetString(ContextFlag)
	switch {
	case err != nil:
		return contexts.Context{}, err
	case server != "" && name != "":
		return contexts.Context{}, vedette.Errorf(vedette.Invalid, "--server and --context exclude each other")
	case server == "" && name == "":
		server = os.Getenv(serverVariable)
	}
	if server != "" {
		return contexts.Context{Server: server}, nil
	}
	if name == "" {
		name = os.Getenv(contextVariable)
	}
	return findContext(name)
}

// findContext returns a context, or the current one if the name is empty. Without a current one it
// is empty.
func findContext(name string) (contexts.Context, error) {
	file, err := contexts.LoadFile()
	if err != nil {
		return contexts.Context{}, err
	}
	if file.IsMissing && os.Getenv(contexts.PathVariable) != "" {
		return contexts.Context{}, vedette.Errorf(vedette.NotFound, "%s names the file %s, which does not exist", contexts.PathVariable,
			file.Path)
	}
	if name == "" {
		name = file.CurrentContext
	}
	if name == "" {
		return contexts.Context{}, nil
	}
	return file.Find(name)
}

// ApplyFlags sets the fields of a context that flags set, or else variables of the environment.
func ApplyFlags(cmd *cobra.Command, c *contexts.Context, environment func(string) string) error {
	for _, s := range textSettings {
		// A command may have a flag of its own with that name, as `vedette ops` has --user.
		flag := cmd.Root().PersistentFlags().Lookup(s.flag)
		value := flag.Value.String()
		if !flag.Changed {
			value = environment(s.variable)
			if value == "" {
				continue
			}
		}
		*s.field(c) = value
		if s.flag == tokenFileFlag {
			c.TokenCommand = nil
		}
	}
	if !cmd.Flags().Changed(insecureFlag) {
		return nil
	}
	var err error
	c.InsecureSkipTLSVerify, err = cmd.Flags().GetBool(insecureFlag)
	return err
}
