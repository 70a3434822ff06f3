//! nova.conf as oslo.config reads it.

mod files;
mod oracle;
