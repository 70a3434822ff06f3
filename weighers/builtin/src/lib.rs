//! The built-in weighers, one file each
