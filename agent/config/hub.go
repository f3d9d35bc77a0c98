package config

import "github.com/vedette-io/vedette/internal/configfile"

// Hub was the connection to the predecessor's cloud, which is gone.
type Hub struct {
	Connection HubConnection `config:"connection"`
	Auth       HubAuth       `config:"auth"`
}

// HubConnection mirrors Clouddriver.
type HubConnection struct {
	// Host and port.
	GRPC string `config:"grpc"`
	// Connect without TLS.
	Insecure bool `config:"insecure" default:"false"`
	// Ignore HTTP_PROXY, HTTPS_PROXY and NO_PROXY.
	NoProxy bool `config:"noProxy" default:"false"`
	TLS     TLS  `config:"tls"`
	// Seconds between two signs of life.
	KeepAliveHeartbeatSeconds int `config:"keepAliveHeartbeatSeconds"`
	// Seconds to wait for the answer to one.
	KeepAliveTimeOutSeconds int `config:"keepAliveTimeOutSeconds"`
}

// HubAuth is how the agent proved who it was.
type HubAuth struct {
	// Bearer token.
	Token        configfile.Secret `config:"token"`
	TokenCommand TokenCommand      `config:"tokenCommand"`
	Armory       struct {
		// Client of the OAuth service.
		ClientID string `config:"clientId"`
		// Its secret.
		Secret configfile.Secret `config:"secret"`
		// Where tokens came from.
		TokenIssuerURL string `config:"tokenIssuerUrl" default:"https://auth.cloud.armory.io/oauth/token"`
		// Whom they were for.
		Audience string `config:"audience" default:"https://api.cloud.armory.io"`
		// Check them.
		Verify bool `config:"verify" default:"true"`
	} `config:"armory"`
	// Seconds before a token is renewed.
	RefreshIntervalSeconds int `config:"refreshIntervalSeconds"`
	// Seconds left on a token at which it is renewed.
	ExpirationLeewaySeconds int `config:"expirationLeewaySeconds" default:"30"`
}
