//! Parts that an operator installs and that turn out to be hostile: components that loop and use up
//! memory, services that never answer, a program that is older than its database; and a stolen
//! login where the broker has TLS and quorum queues, and the region PostgreSQL.

mod plugins;
mod stolen_login;
mod upgrade;
