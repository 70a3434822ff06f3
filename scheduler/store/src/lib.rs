//! The durable state of a scheduler, in SQL through sea-orm
