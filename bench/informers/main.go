// Command informers watches a cluster with client-go's dynamic informers, which keep
// all objects in memory. The benchmarks compare the agent with it, because this is
// the usual way to watch a cluster. It prints how long the informers took to sync and
// then waits until it is killed. It is a separate module so that the product does not
// depend on its libraries.
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

// main takes the path of a kubeconfig, and resources in the form plural.version.group.
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
	cfg.QPS, cfg.Burst = 1000, 1000 // high, because client-side throttling must not slow the benchmark
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
