//! The door for Nova: answers what nova-scheduler is asked, as nova-scheduler answers it, and makes room by preemption.

pub mod preemption;
