//! The built-in cost modules, one file each
