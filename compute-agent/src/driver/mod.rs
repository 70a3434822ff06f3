//! Drivers.
mod error;
mod view;
pub use error::DriverError;
pub use view::{GuestNotice, HostFacts, NoticeOutcome, Occupancy, ServerView};
