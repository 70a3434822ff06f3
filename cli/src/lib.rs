//! The ebbtide command
