package kubernetes_test

import (
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/secret"
	"github.com/vedette-io/vedette/internal/secret/kubernetes"
	"github.com/vedette-io/vedette/internal/secret/secrettest"
	"github.com/vedette-io/vedette/test/controlplane"
)

type object = controlplane.Object

// TestOnlyGrantedSecretsAreRead reads Secrets of a real API server, as a service account that may read one of them.
func TestOnlyGrantedSecretsAreRead(t *testing.T) {
	plane := controlplane.New(t, controlplane.Options{})
	create(t, plane, "namespaces/default/serviceaccounts", object{"metadata": object{"name": "agent"}})
	for _, name := range []string{"db", "forbidden"} {
		create(t, plane, "namespaces/default/secrets", object{"metadata": object{"name": name}, "stringData": object{"password": "hunter2", "empty": ""}})
	}
	create(t, plane, "namespaces/kube-system/secrets", object{"metadata": object{"name": "db"}, "stringData": object{"password": "hunter3"}})
	create(t, plane, "namespaces/default/secrets", object{"metadata": object{"name": "nodata"}})
	allow(t, plane, "default", "db", "nodata", "missing")
	allow(t, plane, "kube-system", "db")
	u, err := url.Parse(plane.URL)
	if err != nil {
		t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(u.Host)
	if err != nil {
		t.Fatal(err)
	}
	engine := &kubernetes.Engine{Host: host, Port: port, Dir: serviceAccountDir(t, plane)}
	l := secret.New(map[string]secret.Engine{"k8s": engine}, secret.Timing{}).Load(t.Context())
	secrettest.ExpectValues(t, l, "", map[string]string{
		"encrypted:k8s!n:db!k:password": "hunter2", "encrypted:k8s!n:db!k:empty": "", "encrypted:k8s!n:db!k:password!ns:kube-system": "hunter3",
	})
	secrettest.ExpectErrors(t, l, "", map[string]struct {
		Kind vedette.ErrorKind
		Text string
	}{
		"encrypted:k8s!n:db!k:user":            {vedette.NotFound, `no key "user"`},
		"encrypted:k8s!n:nodata!k:password":    {vedette.NotFound, "no data"},
		"encrypted:k8s!n:missing!k:password":   {vedette.NotFound, "status 404"},
		"encrypted:k8s!n:forbidden!k:password": {vedette.Denied, "grant the pod's service account the verb get on this Secret in namespace default"},
		"encrypted:k8s!n:a/../b!k:password":    {vedette.Denied, "status 403"},
		"encrypted:k8s!k:password":             {vedette.Invalid, "lacks the parameter n"},
	})
}

func create(t *testing.T, plane *controlplane.Plane, path string, body object) {
	t.Helper()
	if err := plane.Create(t.Context(), "/api/v1/"+path, body); err != nil {
		t.Fatal(err)
	}
}

// allow lets the service account read some Secrets of a namespace.
func allow(t *testing.T, plane *controlplane.Plane, namespace string, names ...string) {
	t.Helper()
	path := "/apis/rbac.authorization.k8s.io/v1/namespaces/" + namespace
	role := object{"metadata": object{"name": "agent"}, "rules": []object{{"apiGroups": []string{""}, "resources": []string{"secrets"}, "verbs": []string{"get"},
		"resourceNames": names}}}
	binding := object{"metadata": object{"name": "agent"}, "roleRef": object{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "agent"},
		"subjects": []object{{"kind": "ServiceAccount", "name": "agent", "namespace": "default"}}}
	if err := plane.Create(t.Context(), path+"/roles", role); err != nil {
		t.Fatal(err)
	}
	if err := plane.Create(t.Context(), path+"/rolebindings", binding); err != nil {
		t.Fatal(err)
	}
}

// serviceAccountDir writes what Kubernetes mounts into pods.
func serviceAccountDir(t *testing.T, plane *controlplane.Plane) string {
	t.Helper()
	token, err := plane.ServiceAccountToken(t.Context(), "default", "agent")
	if err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(plane.CA())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, content := range map[string]string{"token": token, "ca.crt": string(ca), "namespace": "default"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestOutsideOfAPod(t *testing.T) {
	for name, engine := range map[string]*kubernetes.Engine{
		"does not run in a pod":        {},
		"automountServiceAccountToken": {Host: "127.0.0.1", Port: "1", Dir: t.TempDir()},
	} {
		_, err := secret.New(map[string]secret.Engine{"k8s": engine}, secret.Timing{}).Load(t.Context()).Resolve("encrypted:k8s!n:a!k:b")
		if vedette.KindOf(err) != vedette.Invalid || !strings.Contains(err.Error(), name) {
			t.Errorf("got error %v, want %s", err, name)
		}
	}
}

// TestAuthoritiesAreWhole checks that a part of the file with the cluster's authorities is not used.
func TestAuthoritiesAreWhole(t *testing.T) {
	asked := 0
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		fmt.Fprint(w, `{"data":{"b":"eA=="}}`)
	}))
	defer s.Close()
	host, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	dir := t.TempDir()
	for _, tt := range []struct{ file, want string }{
		{string(ca) + string(ca[:len(ca)/2]), "does not end"},
		{string(ca), ""},
	} {
		for name, content := range map[string]string{"token": "t", "ca.crt": tt.file} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		asked = 0
		engine := &kubernetes.Engine{Host: host, Port: port, Dir: dir}
		_, err := secret.New(map[string]secret.Engine{"k8s": engine}, secret.Timing{}).Load(t.Context()).Resolve("encrypted:k8s!n:a!k:b!ns:c")
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) || (asked > 0) != (err == nil) {
			t.Errorf("got %v after %d requests, want %q", err, asked, tt.want)
		}
	}
}

// TestMissingSecret checks that only an API server says that there is no Secret.
func TestMissingSecret(t *testing.T) {
	const status = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`
	secrettest.ExpectNotFound(t, "encrypted:k8s!n:db!k:password!ns:default", status, func(server *httptest.Server) secret.Engine {
		server.StartTLS()
		dir := t.TempDir()
		ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
		for name, content := range map[string][]byte{"ca.crt": ca, "token": []byte("t0ken")} {
			if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		host, port, _ := net.SplitHostPort(server.Listener.Addr().String())
		return &kubernetes.Engine{Host: host, Port: port, Dir: dir}
	})
}
