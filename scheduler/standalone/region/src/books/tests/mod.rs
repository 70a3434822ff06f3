//! Random operations on each book. After each one, its indexes are what its records say, and its
//! answers are those of a search through the records.

mod evacuations;
mod hosts;
mod servers;
