//! Bags of tasks: their files, and the options that make a plan of them.

pub mod files;
pub mod options;
