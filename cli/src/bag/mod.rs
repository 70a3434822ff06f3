//! Bags of tasks for `plan bag` and `simulate bag`: their files, options, tables and charts. What is decided is decided in `ebbtide-bag`.

pub(crate) mod chart;
pub(crate) mod file;
pub(crate) mod options;
pub(crate) mod prices;
mod units;
pub(crate) mod view;

pub(crate) use units::{duration, price};
