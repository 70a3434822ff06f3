//! Bags of tasks for `plan bag` and `simulate bag`: their files, options, tables and charts. What
//! is decided is decided in `ebbtide-bag`.

pub(crate) mod chart;
pub(crate) mod files;
pub(crate) mod options;
pub(crate) mod view;
