//! Workloads, measurements and their checks: what `ebbtide-lab bench` shows and the benchmarks of
//! CI count.
//!
//! - [`cloud`] builds clouds from a seed: saturated ones for requests that preempt, roomy ones for
//!   ordinary requests.
//! - [`preempt`] measures preempting requests and holds every answer against a reference that
//!   shares no code with the engine.
//! - [`request`] measures ordinary requests, and how close they come to reading the columns once.
//! - [`figure2`] has the two other schedulers of the paper and compares the three.
//! - [`memory`] says what a host and an instance take.
//! - [`nova`] times our way to decide as Nova does on Nova's own benchmark input, and compares the
//!   answers.
//! - [`stats`] and [`machine`] say what came out, and where.
//!
//! Only the engine's public interface is used, so whatever makes the engine faster shows here
//! without a change. Workloads are deterministic: the same options give the same clouds and
//! requests on every machine. Only [`timing`] measures time.

pub mod cloud;
pub mod error;
pub mod figure2;
pub mod machine;
pub mod memory;
pub mod nova;
pub mod preempt;
pub mod progress;
pub mod request;
pub mod seeded;
pub mod stats;
pub mod timing;
pub mod workload;

pub use error::BenchError;
pub use machine::Machine;
pub use progress::{NoProgress, Progress};
pub use stats::Latency;
