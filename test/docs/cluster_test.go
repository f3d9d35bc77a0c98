package docs

import (
	"context"
	"fmt"
	"time"

	"github.com/vedette-io/vedette/test/controlplane"
)

func timeout(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d)
}

// createShop creates what accounts watch. Controllers do not run, so nothing else appears.
func createShop(ctx context.Context, plane *controlplane.Plane) error {
	if err := createNamespace(ctx, plane, "shop"); err != nil {
		return err
	}
	for _, name := range []string{"cart", "web"} {
		if err := createDeployment(ctx, plane, "shop", name); err != nil {
			return err
		}
	}
	return createConfigMap(ctx, plane, "shop", "settings", "value")
}

func createNamespace(ctx context.Context, plane *controlplane.Plane, name string) error {
	return plane.Create(ctx, "/api/v1/namespaces", controlplane.Object{"metadata": controlplane.Object{"name": name}})
}

func createDeployment(ctx context.Context, plane *controlplane.Plane, namespace, name string) error {
	return plane.Create(ctx, fmt.Sprintf("/apis/apps/v1/namespaces/%s/deployments", namespace), fmt.Sprintf(`{
		"metadata": {"name": %q}, "spec": {"replicas": 2, "selector": {"matchLabels": {"app": %[1]q}}, "template": {
		"metadata": {"labels": {"app": %[1]q}}, "spec": {"containers": [{"name": "main", "image": "example.com/%[1]s:1.0"}]}}}}`, name))
}

func createConfigMap(ctx context.Context, plane *controlplane.Plane, namespace, name, value string) error {
	return plane.Create(ctx, fmt.Sprintf("/api/v1/namespaces/%s/configmaps", namespace), controlplane.Object{
		"metadata": controlplane.Object{"name": name}, "data": controlplane.Object{"key": value}})
}

// grant lets a user of the cluster do something with resources of a namespace.
func grant(ctx context.Context, plane *controlplane.Plane, user, namespace, group, resource string, verbs ...string) error {
	name := fmt.Sprintf("%s-%s", user, resource)
	path := fmt.Sprintf("/apis/rbac.authorization.k8s.io/v1/namespaces/%s/", namespace)
	if err := plane.Create(ctx, path+"roles", controlplane.Object{"metadata": controlplane.Object{"name": name},
		"rules": []controlplane.Object{{"apiGroups": []string{group}, "resources": []string{resource}, "verbs": verbs}}}); err != nil {
		return err
	}
	return plane.Create(ctx, path+"rolebindings", controlplane.Object{"metadata": controlplane.Object{"name": name},
		"roleRef":  controlplane.Object{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
		"subjects": []controlplane.Object{{"kind": "User", "name": user}}})
}
