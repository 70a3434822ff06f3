//! Connections to the broker: dialled, supervised, replaced; and what is done on them.

mod declare;
mod dial;
mod publish;
mod step;
mod supervise;

pub(crate) use declare::{Subscribed, subscribe};
pub(crate) use dial::{BrokerSession, ConnectionPurpose, Dialer};
pub(crate) use publish::{Publication, Published, Publisher};
pub(crate) use step::StepError;
pub(crate) use supervise::{Link, LinkState};
