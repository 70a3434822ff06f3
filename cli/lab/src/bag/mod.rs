//! Bags of tasks for `plan bag` and `simulate bag`: tables and charts. What is decided is decided
//! in `ebbtide-bag`.

pub(crate) mod chart;
pub(crate) mod view;
