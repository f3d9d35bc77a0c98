# The agent in another cluster than the server. The Secret spin-armory-agent-tls has its certificate.
terraform {
  required_providers {
    helm = {
      source = "hashicorp/helm"
    }
  }
}

module "vedette" {
  source = "../.."

  name             = "vedette-agent"
  namespace        = "vedette"
  create_namespace = true
  agent = {
    account        = "staging"
    replicas       = 2
    server_address = "vedette.example.com:9091"
    tls_secret     = "spin-armory-agent-tls"
  }
}
