//! Bags and prices as people write them: text in, checked values out.

mod file;
mod prices;
mod units;

pub use file::{FileOverrides, Format, bag};
pub use prices::prices;
pub use units::{PriceField, Seconds, duration, price};
