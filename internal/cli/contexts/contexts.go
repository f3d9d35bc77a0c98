// Package contexts reads and writes the file of the servers that a user works with, as
// kubectl's kubeconfig is that of clusters.
//
// The file has no secrets: keys, certificates and tokens are in files of their own, or a
// command prints the token. So the file may be copied to another machine.
package contexts

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/client"
	"github.com/vedette-io/vedette/internal/keypair"
	"github.com/vedette-io/vedette/internal/nearest"
)

// PathVariable is the environment variable with the path of the file.
const PathVariable = "VEDETTE_CONFIG"

// Path returns the path of the file: that in VEDETTE_CONFIG, or ~/.config/vedette/config.yml.
func Path() (string, error) {
	if path := os.Getenv(PathVariable); path != "" {
		return path, nil
	}
	dir := os.Getenv("XDG_CONFIG_HOME")
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", vedette.Errorf(vedette.Invalid, "find the file of contexts: %w: set %s to its path", err, PathVariable)
		}
		dir = filepath.Join(home, ".config")
	}
	return filepath.Join(dir, "vedette", "config.yml"), nil
}

// Context is a server, and as whom to send requests to it. Paths of files are relative to the
// directory of the file of contexts.
type Context struct {
	Name   string `json:"name"`
	Server string `json:"server"`
	// CACert is a PEM file with the authorities of the server's certificate.
	CACert string `json:"cacert,omitempty"`
	// Cert and Key are PEM files with a client certificate and its private key.
	Cert                  string `json:"cert,omitempty"`
	Key                   string `json:"key,omitempty"`
	InsecureSkipTLSVerify bool   `json:"insecureSkipTLSVerify,omitempty"`
	// TokenFile holds a bearer token, for a proxy in front of the server.
	TokenFile string `json:"tokenFile,omitempty"`
	// TokenCommand is a program with its arguments that prints a bearer token.
	TokenCommand []string `json:"tokenCommand,omitempty"`
	User         string   `json:"user,omitempty"`
	UserAccounts string   `json:"userAccounts,omitempty"`
	// Namespace is that of commands without -n and -A.
	Namespace string `json:"namespace,omitempty"`
}

// Options returns how to connect to the server of the context.
func (c Context) Options() (client.Options, error) {
	token, err := c.tokenSource()
	return client.Options{
		Server: c.Server, User: c.User, UserAccounts: c.UserAccounts, Token: token,
		TLS: keypair.ClientTLS{CAFile: c.CACert, SkipVerify: c.InsecureSkipTLSVerify, KeyPair: keypair.Files{Cert: c.Cert, Key: c.Key}},
	}, err
}

// files returns the fields that are paths.
func (c *Context) files() []*string { return []*string{&c.CACert, &c.Cert, &c.Key, &c.TokenFile} }

// ResolveFiles makes the paths of files absolute.
func (c *Context) ResolveFiles(dir string) {
	for _, file := range c.files() {
		if *file != "" && !filepath.IsAbs(*file) {
			*file = filepath.Join(dir, *file)
		}
	}
}

// maxNameLength is the maximum length of the name of a context, in bytes.
const maxNameLength = 255

// Validate checks the values of a context. It reads no files.
func (c Context) Validate() error {
	switch {
	case c.Name == "" || len(c.Name) > maxNameLength || strings.ContainsFunc(c.Name, isSpaceOrControl):
		return vedette.Errorf(vedette.Invalid, "the name of the context %.300q must have 1 to %d bytes, without spaces", c.Name, maxNameLength)
	case c.Server == "":
		return vedette.Errorf(vedette.Invalid, "the context %q has no server: set it with `vedette config set-context %s --server URL`", c.Name,
			c.Name)
	case c.TokenFile != "" && len(c.TokenCommand) > 0:
		return vedette.Errorf(vedette.Invalid, "the context %q has a tokenFile and a tokenCommand: remove one of them", c.Name)
	case c.Key != "" && c.Cert == "":
		return vedette.Errorf(vedette.Invalid, "the context %q has a key, but no cert", c.Name)
	case len(c.Namespace) > maxNameLength || strings.ContainsFunc(c.Namespace, isNeverInNamespace):
		return vedette.Errorf(vedette.Invalid, "the context %q has the namespace %.100q, which no namespace can be called", c.Name, c.Namespace)
	}
	if err := client.CheckServer(c.Server); err != nil {
		return vedette.Errorf(vedette.Invalid, "the context %q: %w", c.Name, err)
	}
	return nil
}

func isNeverInNamespace(r rune) bool { return isSpaceOrControl(r) || r == '/' || r > 0x7f }

func isSpaceOrControl(r rune) bool { return r <= ' ' || r == 0x7f }

// Find returns the context with a name.
func (f *File) Find(name string) (Context, error) {
	if i := f.index(name); i >= 0 {
		return f.Contexts[i], nil
	}
	names := f.names()
	hint := nearest.Hint(name, names)
	switch {
	case len(names) == 0:
		hint = ": create it with `vedette config set-context`"
	case hint == "":
		hint = ": choose one of " + strings.Join(names[:min(len(names), 20)], ", ")
	}
	return Context{}, vedette.Errorf(vedette.NotFound, "%s has no context %.300q%s", f.Path, name, hint)
}

// Set adds a context, or replaces the one with its name. It reports whether it was added.
func (f *File) Set(c Context) (added bool) {
	if i := f.index(c.Name); i >= 0 {
		f.Contexts[i] = c
		return false
	}
	f.Contexts = append(f.Contexts, c)
	return true
}

// Delete removes a context. If it was the current one, no context is current.
func (f *File) Delete(name string) error {
	if _, err := f.Find(name); err != nil {
		return err
	}
	f.Contexts = slices.DeleteFunc(f.Contexts, func(c Context) bool { return c.Name == name })
	if f.CurrentContext == name {
		f.CurrentContext = ""
	}
	return nil
}

func (f *File) index(name string) int {
	return slices.IndexFunc(f.Contexts, func(c Context) bool { return c.Name == name })
}

func (f *File) names() []string {
	var names []string
	for _, c := range f.Contexts {
		names = append(names, c.Name)
	}
	slices.Sort(names)
	return names
}

// canOthersWrite reports whether users other than the owner may change a file. The modes of
// Windows do not say that.
func canOthersWrite(info os.FileInfo) bool {
	return runtime.GOOS != "windows" && info.Mode().Perm()&0o022 != 0
}
