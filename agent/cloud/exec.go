package cloud

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/vedette-io/vedette/internal/configfile"
)

// Exec is how a kubeconfig runs a program for a token.
type Exec struct {
	Command string
	Args    []string
	Env     map[string]string
}

// FromExec returns a source that issues the tokens that a program would print, or nil if the program is none of those that it knows. An
// error says which arguments or variables it does not know: to ignore one could issue a token of someone else.
func FromExec(e Exec) (*Source, error) {
	p := newParser(e)
	switch {
	case e.program() == "aws" && e.isCommand("eks", "get-token"):
		return p.aws()
	case e.program() == "aws-iam-authenticator" && e.isCommand("token"):
		return p.awsIAMAuthenticator()
	case e.program() == "gke-gcloud-auth-plugin":
		return p.gcloudPlugin()
	case e.program() == "kubelogin" && e.isCommand("get-token"):
		return p.kubelogin()
	}
	return nil, nil //nolint:nilnil // most programs are others
}

func (e Exec) program() string { return strings.TrimSuffix(filepath.Base(e.Command), ".exe") }

// isCommand reports whether the words of a subcommand are in the arguments, in this order.
func (e Exec) isCommand(words ...string) bool {
	from := 0
	for _, word := range words {
		i := slices.Index(e.Args[from:], word)
		if i < 0 {
			return false
		}
		from += i + 1
	}
	return true
}

// parser reads the arguments and variables of one program.
type parser struct {
	Exec
	flags    *pflag.FlagSet
	known    map[string]bool // variables
	problems []string
}

func newParser(e Exec) *parser {
	p := &parser{Exec: e, flags: pflag.NewFlagSet(e.program(), pflag.ContinueOnError), known: map[string]bool{}}
	p.flags.Usage = func() {}
	return p
}

// text defines an argument with a value.
func (p *parser) text(name, shorthand string) *string {
	return p.flags.StringP(name, shorthand, "", "")
}

// env returns the value of a variable, which counts as known.
func (p *parser) env(name string) string {
	p.known[name] = true
	return p.Env[name]
}

// parse reads the arguments. Anything but the subcommand and what was defined is a problem. Problems do not quote values, because these
// may be secrets.
func (p *parser) parse(subcommand ...string) {
	err := p.flags.Parse(p.Args)
	var unknown *pflag.NotExistError
	var missing *pflag.ValueRequiredError
	switch {
	case errors.As(err, &unknown) && len(unknown.GetSpecifiedName()) == 1:
		p.problem("unknown argument -%.1s", unknown.GetSpecifiedName())
	case errors.As(err, &unknown):
		p.problem("unknown argument --%.40s", unknown.GetSpecifiedName())
	case errors.As(err, &missing):
		p.problem("no value of --%s", missing.GetFlag().Name)
	case err != nil:
		p.problem("arguments that cannot be read")
	case !slices.Equal(p.flags.Args(), subcommand):
		p.problem("unknown arguments beside %q", strings.Join(subcommand, " "))
	}
}

func (p *parser) problem(format string, args ...any) {
	p.problems = append(p.problems, fmt.Sprintf(format, args...))
}

// require adds a problem if an argument is missing.
func (p *parser) require(name, value string) {
	if value == "" && len(p.problems) == 0 {
		p.problem("no --%s", name)
	}
}

// finish returns the source, unless there is a problem.
func (p *parser) finish(source *Source) (*Source, error) {
	for name, value := range p.Env {
		if !p.known[name] && value != "" {
			p.problem("unknown variable %.60q", name)
		}
	}
	if len(p.problems) == 0 {
		return source, nil
	}
	slices.Sort(p.problems)
	return nil, fmt.Errorf("the agent cannot get the token itself as %s does (%s)", p.program(), strings.Join(p.problems, ", "))
}

// usualVariables have values that change nothing for the agent.
var usualVariables = map[string]string{"AWS_STS_REGIONAL_ENDPOINTS": "regional", "AWS_SDK_LOAD_CONFIG": "1", "AWS_DEFAULT_OUTPUT": "json"}

// fillFromAWS completes settings with the variables that the command line of AWS and aws-iam-authenticator share.
func (p *parser) fillFromAWS(e *EKS) {
	e.Profile = cmp.Or(e.Profile, p.env("AWS_PROFILE"))
	e.Region = cmp.Or(e.Region, p.env("AWS_REGION"), p.env("AWS_DEFAULT_REGION"))
	e.configFile = p.env("AWS_CONFIG_FILE")
	e.credentialsFile = p.env("AWS_SHARED_CREDENTIALS_FILE")
	e.accessKeyID = p.env("AWS_ACCESS_KEY_ID")
	e.secretAccessKey = p.env("AWS_SECRET_ACCESS_KEY")
	e.stsToken = p.env("AWS_SESSION_TOKEN")
	for name, usual := range usualVariables {
		if p.Env[name] == usual {
			p.known[name] = true
		}
	}
}

func (p *parser) aws() (*Source, error) {
	name, id := p.text("cluster-name", ""), p.text("cluster-id", "")
	region, role := p.text("region", ""), p.text("role-arn", "")
	profile, output := p.text("profile", ""), p.text("output", "")
	p.parse("eks", "get-token")
	if *output != "" && *output != "json" {
		p.problem("an --output other than json")
	}
	e := EKS{ClusterName: cmp.Or(*id, *name), Region: *region, RoleARN: *role, Profile: *profile}
	p.require("cluster-name", e.ClusterName)
	p.fillFromAWS(&e)
	return p.finish(e.source())
}

func (p *parser) awsIAMAuthenticator() (*Source, error) {
	id, region := p.text("cluster-id", "i"), p.text("region", "")
	role := p.text("role", "r")
	session, external := p.text("session-name", "s"), p.text("external-id", "e")
	p.parse("token")
	e := EKS{ClusterName: *id, Region: *region, RoleARN: *role, ExternalID: configfile.NewSecret(*external), sessionName: *session}
	p.require("cluster-id", e.ClusterName)
	p.fillFromAWS(&e)
	return p.finish(e.source())
}

func (p *parser) gcloudPlugin() (*Source, error) {
	p.flags.Bool("use_application_default_credentials", false, "")
	p.parse()
	p.env("USE_GKE_GCLOUD_AUTH_PLUGIN") // is kubectl's
	source, err := Google{}.Source()
	if err != nil {
		return nil, err
	}
	return p.finish(source)
}

// entraHosts are the addresses of Entra ID by the names that kubelogin has for clouds, in lower case.
var entraHosts = map[string]string{
	"": "", "azurepubliccloud": "", "azurecloud": "",
	"azureusgovernmentcloud": "https://login.microsoftonline.us/", "azureusgovernment": "https://login.microsoftonline.us/",
	"azurechinacloud": "https://login.chinacloudapi.cn/", "azurechina": "https://login.chinacloudapi.cn/",
}

func (p *parser) kubelogin() (*Source, error) {
	login, environment := p.text("login", "l"), p.text("environment", "e")
	server, tenant := p.text("server-id", ""), p.text("tenant-id", "t")
	client, secret := p.text("client-id", ""), p.text("client-secret", "")
	certificate, password := p.text("client-certificate", ""), p.text("client-certificate-password", "")
	federated, authority := p.text("federated-token-file", ""), p.text("authority-host", "")
	resource := p.text("identity-resource-id", "")
	p.parse("get-token")
	a := AKS{Login: strings.ToLower(cmp.Or(*login, p.env("AAD_LOGIN_METHOD"), "devicecode")), ServerID: *server,
		TenantID:              cmp.Or(*tenant, p.env("AZURE_TENANT_ID")),
		ClientID:              cmp.Or(*client, p.env("AAD_SERVICE_PRINCIPAL_CLIENT_ID"), p.env("AZURE_CLIENT_ID")),
		ClientSecret:          configfile.NewSecret(cmp.Or(*secret, p.env("AAD_SERVICE_PRINCIPAL_CLIENT_SECRET"), p.env("AZURE_CLIENT_SECRET"))),
		ClientCertificateFile: cmp.Or(*certificate, p.env("AAD_SERVICE_PRINCIPAL_CLIENT_CERTIFICATE"), p.env("AZURE_CLIENT_CERTIFICATE_PATH")),
		AuthorityHost:         cmp.Or(*authority, p.env("AZURE_AUTHORITY_HOST")),
		certificatePassword: cmp.Or(*password, p.env("AAD_SERVICE_PRINCIPAL_CLIENT_CERTIFICATE_PASSWORD"),
			p.env("AZURE_CLIENT_CERTIFICATE_PASSWORD")),
		federatedTokenFile: cmp.Or(*federated, p.env("AZURE_FEDERATED_TOKEN_FILE")), identityResourceID: *resource,
	}
	host, isKnown := entraHosts[strings.ToLower(*environment)]
	if !isKnown {
		p.problem("unknown --environment %.40q", *environment)
	}
	a.AuthorityHost = cmp.Or(a.AuthorityHost, host)
	if !slices.Contains([]string{loginWI, loginMSI, loginSPN}, a.Login) {
		p.problem("--login %.20s, which needs a person or another program: use workloadidentity, msi or spn, see %s", a.Login, aksPage)
	}
	p.require("server-id", a.ServerID)
	return p.finish(a.source())
}
