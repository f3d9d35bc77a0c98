package clouddriver

// infrastructureRoutes are the views of load balancers, security groups and raw resources, the
// search, and the cache's administration.
func (a *api) infrastructureRoutes() []route {
	return []route{
		{"applications/{app}/loadBalancers", a.listLoadBalancers},
		{"{provider}/loadBalancers", a.listAllLoadBalancers},
		{"{provider}/loadBalancers/{name}", a.getLoadBalancerByName},
		{"{provider}/loadBalancers/{account}/{region}/{name}", a.getLoadBalancer},
		{"securityGroups", a.listSecurityGroups},
		{"securityGroups/{account}", a.listAccountSecurityGroups},
		{"securityGroups/{account}/{provider}", a.listProviderSecurityGroups},
		{"securityGroups/{account}/{provider}/{name}", a.listNamedSecurityGroups},
		{"securityGroups/{account}/{provider}/{region}/{name}", a.getSecurityGroup},
		{"applications/{app}/rawResources", a.listRawResources},
		{"search", a.search},

		{"cache/introspection", a.listCachingAgents},
		{"PUT admin/db/truncate/{namespace}", cleanTables},
		{"PUT admin/db/drop/{namespace}", cleanTables},
		{"PUT admin/db/drop_version/{version}", dropTablesByVersion},
	}
}
