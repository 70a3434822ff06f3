//! `ebbtide run`: real processes that work, are taken away with their servers, and go on elsewhere.

mod bid;
mod demonstration;
mod guest;
mod kit;
mod local;
