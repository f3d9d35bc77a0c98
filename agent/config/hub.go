package config

import "github.com/vedette-io/vedette/internal/configfile"

// Hub configured the connection to the predecessor's cloud service, which no
// longer exists.
type Hub struct {
	Connection HubConnection `config:"connection"`
	Auth       HubAuth       `config:"auth"`
}

// HubConnection mirrors Clouddriver.
type HubConnection struct {
	// Host and port.
	GRPC string `config:"grpc,warn"`
	// Connect without TLS.
	Insecure bool `config:"insecure" default:"false"`
	// Ignore HTTP_PROXY, HTTPS_PROXY and NO_PROXY.
	NoProxy bool `config:"noProxy" default:"false"`
	TLS     TLS  `config:"tls"`
	// Time between two heartbeats, in seconds.
	KeepAliveHeartbeatSeconds int `config:"keepAliveHeartbeatSeconds"`
	// Time to wait for the answer to a heartbeat, in seconds.
	KeepAliveTimeOutSeconds int `config:"keepAliveTimeOutSeconds"`
}

// HubAuth identified the agent to the cloud service.
type HubAuth struct {
	// Bearer token.
	Token        configfile.Secret `config:"token"`
	TokenCommand TokenCommand      `config:"tokenCommand"`
	Armory       struct {
		// Client of the OAuth service.
		ClientID string `config:"clientId"`
		// Secret of the client.
		Secret configfile.Secret `config:"secret"`
		// URL that issued tokens.
		TokenIssuerURL string `config:"tokenIssuerUrl" default:"https://auth.cloud.armory.io/oauth/token"`
		// Audience of the tokens.
		Audience string `config:"audience" default:"https://api.cloud.armory.io"`
		// Verify tokens.
		Verify bool `config:"verify" default:"true"`
	} `config:"armory"`
	// Time before a token is renewed, in seconds.
	RefreshIntervalSeconds int `config:"refreshIntervalSeconds"`
	// Remaining lifetime at which a token is renewed, in seconds.
	ExpirationLeewaySeconds int `config:"expirationLeewaySeconds" default:"30"`
}
