//! The transport's connections, and what is done on them.

mod channel_error;
mod connect;
mod declare;
mod kombu;
mod publish;

pub(crate) use channel_error::ChannelError;
pub(crate) use connect::{Link, LinkState, brokers, dialer, start};
pub(crate) use declare::{QueueConsumers, subscribe};
pub(crate) use publish::{Publication, Publisher};
