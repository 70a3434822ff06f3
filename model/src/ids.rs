//! Identifiers: UUIDs of distinct types.
//!
//! This crate creates none. The edge crates create them (module `ids`), so that the core stays
//! deterministic.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use uuid::Uuid;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Uuid::from_str(text).map(Self)
            }
        }

        impl From<Uuid> for $name {
            fn from(id: Uuid) -> Self {
                Self(id)
            }
        }
    };
}

id!(
    /// A server (Nova's instance UUID; Placement's consumer).
    ServerId
);
id!(
    /// A decision of the engine, the handle of `ebbtide explain`.
    DecisionId
);
id!(
    /// An evacuation: the course of one victim from the claim to its end.
    EvacuationId
);
id!(
    /// A flavor.
    FlavorId
);
id!(
    /// A server group.
    GroupId
);
id!(
    /// A host aggregate.
    AggregateId
);
id!(
    /// A message on the bus; the key by which duplicates are recognised.
    MessageId
);
