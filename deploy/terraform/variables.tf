variable "name" {
  description = "Name of the Helm release."
  type        = string
  default     = "vedette"
  validation {
    condition     = can(regex("^[a-z0-9]([-a-z0-9]{0,51}[a-z0-9])?$", var.name))
    error_message = "The name must have at most 53 lower-case letters, digits and dashes."
  }
}

variable "namespace" {
  description = "Namespace of the release. Spinnaker's for a server, which Spinnaker's services then find by its short name."
  type        = string
  validation {
    condition     = can(regex("^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$", var.namespace))
    error_message = "The namespace must have at most 63 lower-case letters, digits and dashes."
  }
}

variable "create_namespace" {
  description = "Create the namespace if it does not exist."
  type        = bool
  default     = false
}

variable "chart" {
  description = "The chart: an address in a registry, or a directory."
  type        = string
  default     = "oci://ghcr.io/vedette-io/charts/vedette"
}

variable "chart_version" {
  description = "Version of the chart, such as 0.1.0. Not for a directory."
  type        = string
  default     = null
}

variable "image_registry" {
  description = "Registry and organization of the images. Default: the chart's."
  type        = string
  default     = null
}

variable "server" {
  description = "The server. Without it, only an agent is installed."
  type = object({
    mode             = optional(string, "none") # how Spinnaker reaches it: none, replace or front
    database_url     = optional(string)         # without a password; default: SQLite on a volume
    database_secret  = optional(string)         # Secret with the key password
    grpc_type        = optional(string, "ClusterIP")
    grpc_hosts       = optional(list(string), [])
    tls_mode         = optional(string, "generate")
    tls_issuer       = optional(string) # of cert-manager
    tls_secret       = optional(string)
    tls_agent_secret = optional(string)
  })
  default = null
  validation {
    condition     = var.server == null ? true : contains(["none", "replace", "front"], var.server.mode)
    error_message = "The mode must be none, replace or front."
  }
  validation {
    condition     = var.server == null ? true : contains(["generate", "certManager", "secret", "off"], var.server.tls_mode)
    error_message = "The tls_mode must be generate, certManager, secret or off."
  }
  validation {
    condition     = var.server == null ? true : contains(["ClusterIP", "NodePort", "LoadBalancer"], var.server.grpc_type)
    error_message = "The grpc_type must be ClusterIP, NodePort or LoadBalancer."
  }
  validation {
    condition     = try(var.server.database_url, null) == null ? true : can(regex("^(postgres|postgresql|mysql)://[^:@/]+@", var.server.database_url))
    error_message = "The database_url must be one such as postgres://vedette@db.example.com:5432/vedette, without a password, which belongs into database_secret."
  }
  validation {
    condition     = try(var.server.tls_mode, null) != "certManager" || try(var.server.tls_issuer, null) != null
    error_message = "The tls_mode certManager needs a tls_issuer."
  }
}

variable "agent" {
  description = "The agent. Without it, only a server is installed."
  type = object({
    account            = optional(string) # of the agent's own cluster, unique in the installation
    server_address     = optional(string) # default: the server of this module
    tls_secret         = optional(string)
    replicas           = optional(number, 1)
    read_only          = optional(bool, false)
    namespaces         = optional(list(string), []) # to which the account is restricted
    kubeconfig_secrets = optional(map(string), {})  # by account, the Secret with its kubeconfig
  })
  default = null
  validation {
    condition     = var.agent == null ? true : var.agent.replicas >= 0 && floor(var.agent.replicas) == var.agent.replicas
    error_message = "The replicas must be a whole number."
  }
  validation {
    condition     = var.agent == null ? true : var.agent.account != null || length(var.agent.kubeconfig_secrets) > 0
    error_message = "An agent needs an account of its own cluster, or kubeconfig_secrets."
  }
  validation {
    condition     = try(var.agent.server_address, null) == null ? true : can(regex("^[^/]+:[0-9]+$", var.agent.server_address))
    error_message = "The server_address must be a host and a port, such as vedette.example.com:9091."
  }
}

variable "values" {
  description = "Further values of the chart, which count more than those of the other variables."
  type        = any
  default     = {}
}

variable "wait" {
  description = "Wait until all pods are ready."
  type        = bool
  default     = true
}

variable "timeout" {
  description = "Seconds to wait."
  type        = number
  default     = 300
}
