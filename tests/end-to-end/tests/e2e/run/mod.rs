//! `ebbtide run`: real processes that work, are taken away with their servers, and go on elsewhere.

mod beside;
mod guest;
mod kit;
mod local;
