//! What plugins do, and what comes of it. Whatever it is, the caller lives and hears what happened.

mod contract;
mod costs;
mod files;
mod kit;
mod misdeeds;
