//! Nova's objects on the wire, and its configuration.

mod nova_conf;
mod wire;
