//! Nova's databases: cells, hosts, services, instances, and what changed since.
