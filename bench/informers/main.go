// Command informers is the usual way to follow a cluster, to compare with:
// client-go's dynamic informers, which keep all objects. It prints how long they
// took to be in sync and waits until it is killed. It is a module of its own so
// that the product does not depend on what it needs.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/clientcmd"
)

// The arguments are a kubeconfig and resources as "plural.version.group".
func main() {
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "informers:", err)
		os.Exit(1)
	}
}

func run(kubeconfig string, resources []string) error {
	began := time.Now()
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	cfg.QPS, cfg.Burst = 1000, 1000 // nobody should wait for a limit of our own
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return err
	}
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	for _, r := range resources {
		parts := strings.SplitN(r, ".", 3)
		factory.ForResource(schema.GroupVersionResource{Resource: parts[0], Version: parts[1], Group: parts[2]})
	}
	stop := make(chan struct{})
	factory.Start(stop)
	factory.WaitForCacheSync(stop)
	fmt.Printf("done %d 0\n", time.Since(began).Nanoseconds())
	<-context.Background().Done()
	return nil
}
