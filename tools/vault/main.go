// Command vault runs an unsealed Vault in memory on a free port of 127.0.0.1, with the engines and the
// methods to log in that our tests need: the rest of Vault takes ten times as long to compile. It prints
// one line of JSON, {"url": …, "token": …}, and ends when its standard input is closed.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"

	"github.com/hashicorp/go-hclog"
	credKubernetes "github.com/hashicorp/vault-plugin-auth-kubernetes"
	logicalKV "github.com/hashicorp/vault-plugin-secrets-kv"
	credAppRole "github.com/hashicorp/vault/builtin/credential/approle"
	credUserpass "github.com/hashicorp/vault/builtin/credential/userpass"
	vaulthttp "github.com/hashicorp/vault/http"
	"github.com/hashicorp/vault/internalshared/configutil"
	"github.com/hashicorp/vault/sdk/helper/consts"
	"github.com/hashicorp/vault/sdk/logical"
	"github.com/hashicorp/vault/sdk/physical/inmem"
	"github.com/hashicorp/vault/vault"
)

var credentials = map[string]logical.Factory{
	"approle":    credAppRole.Factory,
	"kubernetes": credKubernetes.Factory,
	"userpass":   credUserpass.Factory,
}

var engines = map[string]logical.Factory{"kv": logicalKV.Factory}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "vault:", err)
		os.Exit(1)
	}
}

func run() error {
	core, token, err := newCore()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	handler := vaulthttp.Handler.Handler(&vault.HandlerProperties{Core: core, ListenerConfig: &configutil.Listener{}})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		listener.Close()
	}()
	if err := json.NewEncoder(os.Stdout).Encode(map[string]string{"url": "http://" + listener.Addr().String(), "token": token}); err != nil {
		return err
	}
	_ = http.Serve(listener, handler)
	return core.Shutdown()
}

// newCore returns an unsealed Vault and its root token.
func newCore() (*vault.Core, string, error) {
	log := hclog.New(&hclog.LoggerOptions{Level: hclog.Warn, Output: os.Stderr})
	storage, err := inmem.NewInmem(nil, log)
	if err != nil {
		return nil, "", fmt.Errorf("create the storage: %w", err)
	}
	core, err := vault.NewCore(&vault.CoreConfig{Physical: storage, LogicalBackends: engines, CredentialBackends: credentials,
		BuiltinRegistry: registry{}, DisableMlock: true, Logger: log})
	if err != nil {
		return nil, "", fmt.Errorf("create Vault: %w", err)
	}
	seal := &vault.SealConfig{SecretShares: 1, SecretThreshold: 1}
	created, err := core.Initialize(context.Background(), &vault.InitParams{BarrierConfig: seal, RecoveryConfig: seal})
	if err != nil {
		return nil, "", fmt.Errorf("initialize Vault: %w", err)
	}
	if _, err := core.Unseal(created.SecretShares[0]); err != nil {
		return nil, "", fmt.Errorf("unseal Vault: %w", err)
	}
	return core, created.RootToken, nil
}

// registry names the plugins that are built in.
type registry struct{}

func (registry) backends(kind consts.PluginType) map[string]logical.Factory {
	switch kind {
	case consts.PluginTypeCredential:
		return credentials
	case consts.PluginTypeSecrets:
		return engines
	}
	return nil
}

func (r registry) Contains(name string, kind consts.PluginType) bool {
	_, ok := r.backends(kind)[name]
	return ok
}

func (r registry) Get(name string, kind consts.PluginType) (func() (any, error), bool) {
	factory, ok := r.backends(kind)[name]
	return func() (any, error) { return factory, nil }, ok
}

func (r registry) Keys(kind consts.PluginType) []string {
	var keys []string
	for name := range r.backends(kind) {
		keys = append(keys, name)
	}
	return keys
}

func (r registry) DeprecationStatus(name string, kind consts.PluginType) (consts.DeprecationStatus, bool) {
	return consts.Supported, r.Contains(name, kind)
}

func (registry) IsBuiltinEntPlugin(string, consts.PluginType) bool { return false }
