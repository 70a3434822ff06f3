//! The transport's connections, and what is done on them.

mod connect;
mod declare;
mod kombu;
mod publish;
mod step;

pub(crate) use connect::{Link, LinkState, dialer, start};
pub(crate) use declare::{Subscribed, subscribe};
pub(crate) use publish::{Publication, Published, Publisher};
pub(crate) use step::StepError;
