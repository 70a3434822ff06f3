//! Charts: figures and legends.

mod figures;
mod legends;
