package clouddriver

// infrastructureRoutes are the views of load balancers, security groups, raw resources and the
// search.
func (a *api) infrastructureRoutes() []route {
	return []route{
		{"cache/introspection", a.listCachingAgents},
		{"PUT admin/db/truncate/{namespace}", cleanTables},
		{"PUT admin/db/drop/{namespace}", cleanTables},
		{"PUT admin/db/drop_version/{version}", dropTablesByVersion},
	}
}
