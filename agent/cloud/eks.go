package cloud

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/endpointcreds"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/vedette-io/vedette/internal/configfile"
)

// EKS says for which cluster of EKS, and as whom, tokens are issued. The identity is that of the environment, as other programs for
// AWS find it: IRSA, EKS Pod Identity, variables, a profile, the node.
type EKS struct {
	// Name of the cluster in EKS, or the ID of a local cluster on an Outpost.
	ClusterName string `config:"clusterName"`
	// Region of STS, which is that of the cluster. Default: AWS_REGION, which EKS sets in pods with an identity of AWS, or the profile's.
	Region string `config:"region"`
	// ARN of a role to assume first, for example in the account of the cluster.
	RoleARN string `config:"roleArn"`
	// What the role's trust policy requires as sts:ExternalId.
	ExternalID configfile.Secret `config:"externalId"`
	// Profile in AWS's configuration files. Default: AWS_PROFILE.
	Profile string `config:"profile"`

	sessionName                            string // of the role
	configFile, credentialsFile            string // of profiles; empty for the usual ones
	accessKeyID, secretAccessKey, stsToken string // instead of those of the environment
}

const (
	eksTokenPrefix = "k8s-aws-v1."
	// clusterHeader is signed, so that a token is valid for one cluster only.
	clusterHeader = "x-k8s-aws-id"
	// eksLifetime is for how long EKS accepts a token, less a minute for the way.
	eksLifetime = 14 * time.Minute
	// presignedSeconds must be in the URL. EKS has a lifetime of its own.
	presignedSeconds = "60"
	eksPage          = "docs/cloud-eks.md"
	// temporaryKey is at the beginning of the ids of keys that count only together with a session token.
	temporaryKey = "ASIA"
)

func (e EKS) source() *Source {
	name := "EKS cluster " + e.ClusterName
	if e.Region != "" {
		name += " in " + e.Region
	}
	return &Source{name: name, service: "AWS", page: eksPage, issue: e.issue,
		noIdentity: "neither IRSA (AWS_WEB_IDENTITY_TOKEN_FILE), nor EKS Pod Identity (AWS_CONTAINER_CREDENTIALS_FULL_URI), variables, or a profile " +
			"gives the agent an identity of AWS, and the node gives it none",
		rejected: "the cluster has no access entry for this identity of AWS, or another name or region: see " + eksPage}
}

// issue presigns a request of STS that says who signed it. Nothing is sent for that, except to get what it is signed with.
func (e EKS) issue(ctx context.Context, client *http.Client) (Token, error) {
	cfg, err := awsconfig.LoadDefaultConfig(ctx, e.options(client)...)
	if err != nil {
		return Token{}, err //nolint:wrapcheck // Source names what it is about
	}
	if cfg.Region == "" {
		return Token{}, setupErrorf("the region is unknown: set region, or AWS_REGION")
	}
	if e.RoleARN != "" {
		cfg.Credentials = aws.NewCredentialsCache(stscreds.NewAssumeRoleProvider(sts.NewFromConfig(cfg), e.RoleARN, e.assumeRole))
	}
	began := time.Now()
	signer, err := cfg.Credentials.Retrieve(ctx)
	if err != nil {
		return Token{}, err //nolint:wrapcheck // as above
	}
	if strings.HasPrefix(signer.AccessKeyID, temporaryKey) && signer.SessionToken == "" {
		return Token{}, errors.New("the credentials need a session token, and have none")
	}
	cfg.Credentials = credentials.StaticCredentialsProvider{Value: signer}
	request, err := sts.NewPresignClient(sts.NewFromConfig(cfg)).PresignGetCallerIdentity(ctx, &sts.GetCallerIdentityInput{},
		func(o *sts.PresignOptions) {
			o.ClientOptions = append(o.ClientOptions, sts.WithAPIOptions(
				smithyhttp.SetHeaderValue(clusterHeader, e.ClusterName), smithyhttp.SetHeaderValue("X-Amz-Expires", presignedSeconds)))
		})
	if err != nil {
		return Token{}, err //nolint:wrapcheck // as above
	}
	token := Token{Value: eksTokenPrefix + base64.RawURLEncoding.EncodeToString([]byte(request.URL)), Expires: began.Add(eksLifetime)}
	if signer.CanExpire && !signer.Expires.IsZero() && signer.Expires.Before(token.Expires) {
		token.Expires = signer.Expires // STS rejects what they have signed then
	}
	return token, nil
}

func (e EKS) options(client *http.Client) []func(*awsconfig.LoadOptions) error {
	options := []func(*awsconfig.LoadOptions) error{
		awsconfig.WithHTTPClient(client), awsconfig.WithRegion(e.Region), awsconfig.WithSharedConfigProfile(e.Profile),
		awsconfig.WithEndpointCredentialOptions(func(o *endpointcreds.Options) { o.HTTPClient = client }), // of Pod Identity
		awsconfig.WithRetryer(func() aws.Retryer { return aws.NopRetryer{} }),                             // the caller retries
	}
	if e.configFile != "" {
		options = append(options, awsconfig.WithSharedConfigFiles([]string{e.configFile}))
	}
	if e.credentialsFile != "" {
		options = append(options, awsconfig.WithSharedCredentialsFiles([]string{e.credentialsFile}))
	}
	if e.accessKeyID != "" {
		options = append(options, awsconfig.WithCredentialsProvider(
			credentials.NewStaticCredentialsProvider(e.accessKeyID, e.secretAccessKey, e.stsToken)))
	}
	return options
}

func (e EKS) assumeRole(o *stscreds.AssumeRoleOptions) {
	o.RoleSessionName = cmp.Or(e.sessionName, "vedette-agent")
	if id := e.ExternalID.Reveal(); id != "" {
		o.ExternalID = &id
	}
}
