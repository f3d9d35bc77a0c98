// Package secretsmanager reads secrets of AWS Secrets Manager:
//
//	encrypted:secrets-manager!r:REGION!s:NAME!k:KEY
//
// KEY is a key of a secret that is a JSON object; without it, the secret is the whole text. In
// files, the secret is always whole, and may be binary.
package secretsmanager

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/secret"
)

// Engine reads secrets with the credentials of the environment, as other programs for AWS. The zero
// value is usable.
type Engine struct {
	mu     sync.Mutex
	client *secretsmanager.Client
}

// Locate implements secret.Engine.
func (e *Engine) Locate(r secret.Reference) (secret.Location, error) {
	params, err := r.Params([]string{"r", "s"}, []string{"k"})
	if err != nil {
		return secret.Location{}, err
	}
	key := params["k"]
	if r.IsFile && key != "" {
		return secret.Location{}, vedette.Errorf(vedette.Invalid, "%s must not have a key: a file always has the whole secret", r)
	}
	location := secret.Location{
		Document: params["r"] + "!" + params["s"],
		Fetch:    func(ctx context.Context) ([]byte, error) { return e.fetch(ctx, params["r"], params["s"]) },
		Select:   secret.Whole,
	}
	if key != "" {
		location.Select = func(document []byte) (string, error) { return secret.JSONKey(document, key) }
	}
	return location, nil
}

// load finds out the credentials when they are needed first.
func (e *Engine) load(ctx context.Context) (*secretsmanager.Client, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.client != nil {
		return e.client, nil
	}
	// The credentials outlive the request that asks for them first.
	cfg, err := awsconfig.LoadDefaultConfig(context.WithoutCancel(ctx))
	if err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "load the configuration of AWS: %w", err)
	}
	e.client = secretsmanager.NewFromConfig(cfg, func(o *secretsmanager.Options) {
		o.Retryer = aws.NopRetryer{} // whoever fetches retries
		o.HTTPClient = limitedClient{o.HTTPClient}
	})
	return e.client, nil
}

// limitedClient limits the answers, which the library reads as a whole.
type limitedClient struct{ next secretsmanager.HTTPClient }

func (c limitedClient) Do(r *http.Request) (*http.Response, error) {
	return secret.LimitBodies(roundTripper(c.next.Do)).RoundTrip(r)
}

type roundTripper func(r *http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (e *Engine) fetch(ctx context.Context, region, name string) ([]byte, error) {
	client, err := e.load(ctx)
	if err != nil {
		return nil, err
	}
	answer, err := client.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: &name},
		func(o *secretsmanager.Options) { o.Region = region })
	switch {
	case err != nil:
		return nil, explain(ctx, err)
	case answer.SecretBinary != nil:
		return answer.SecretBinary, nil
	case answer.SecretString != nil:
		return []byte(*answer.SecretString), nil
	}
	return nil, vedette.Errorf(vedette.NotFound, "the secret has no value")
}

// explain gives an error of the library a kind. Without an answer of the service, there is no
// network, or there are no credentials yet.
func explain(ctx context.Context, err error) error {
	var response *awshttp.ResponseError
	switch {
	case !errors.As(err, &response):
		return secret.Unreachable(ctx, "AWS Secrets Manager", err)
	case retry.IsErrorRetryables(retry.DefaultRetryables).IsErrorRetryable(err).Bool():
		return vedette.Errorf(vedette.Unavailable, "%w", err)
	}
	return vedette.Errorf(secret.KindOfStatus(response.HTTPStatusCode()), "%w", err)
}
