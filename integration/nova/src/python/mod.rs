//! As much of Python as Nova's decisions depend on: how numbers are read from text, how values
//! become text, how values compare, how JSON is read. Nova compares what an operator typed with
//! what a host reported through these rules.

mod convert;
pub mod datetime;
pub mod json;
mod ordered;
mod repr;
mod value;

pub use convert::{from_json, to_json};
pub use ebbtide_model::python::{number, text};
pub use ordered::OrderedMap;
/// A Python dict with text for keys.
pub use ordered::OrderedMap as Dict;
pub use repr::{float_repr, string_repr};
pub use value::{Object, Value};
