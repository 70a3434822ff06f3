//! The cost module contract: flat columns over candidate victims in, one cost each out
