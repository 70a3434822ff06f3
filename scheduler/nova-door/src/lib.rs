//! The door for Nova: answers as nova-scheduler does, and makes room by preemption.
