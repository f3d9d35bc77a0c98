# Server and agent in one cluster, on PostgreSQL, with a load balancer for agents of other clusters.
terraform {
  required_providers {
    helm = {
      source = "hashicorp/helm"
    }
  }
}

module "vedette" {
  source = "../.."

  namespace        = "spinnaker"
  create_namespace = true
  server = {
    database_url    = "postgres://vedette@db.example.com:5432/vedette"
    database_secret = "vedette-database"
    grpc_type       = "LoadBalancer"
    grpc_hosts      = ["vedette.example.com"]
  }
  agent = {
    account = "prod"
  }
}

output "address" {
  value = module.vedette.rest_address
}
