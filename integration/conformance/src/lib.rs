//! Holds `ebbtide-nova` against what the real Nova decides.
//!
//! `integration/nova/oracle` runs Nova on cases and records its answers as lines of JSON. This
//! crate reads a case, computes our answer, and names each difference from the recorded one.
//! `ebbtide-lab conform nova`, the tests and the benchmarks use it; the scheduler does not link it.

pub mod answer;
pub mod bench_input;
pub mod case;
pub mod conform;
