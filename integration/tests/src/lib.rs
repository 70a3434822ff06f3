//! End-to-end tests of a region of real processes
