//! Numbers of a weigher that are known without a call.

use crate::{Column, HostBatch, WeigherError};

/// The form of a weigher's numbers, if it can be stated without a call. The engine then weighs a
/// large cloud without copying its columns.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum WeigherForm {
    /// No known form: the engine calls the weigher.
    #[default]
    Opaque,
    /// Each host's number in a column.
    Column(Column),
    /// Zero minus each host's number in a column.
    Negated(Column),
    /// The same for every host.
    Constant(f64),
}

impl WeigherForm {
    /// Writes the number of each host into `out`.
    ///
    /// Zero minus the number, and not the number with its sign turned: Python's `-1 * 0` is 0, and
    /// signs of zero show in explanations.
    ///
    /// # Errors
    /// A column that is missing, room for another number of hosts than there are, or
    /// [`WeigherError::NoForm`].
    pub(crate) fn write(self, hosts: &HostBatch<'_>, out: &mut [f64]) -> Result<(), WeigherError> {
        match self {
            Self::Opaque => return Err(WeigherError::NoForm),
            Self::Column(column) => {
                let numbers = hosts.column(column)?;
                hosts.check_room(out)?;
                out.copy_from_slice(numbers);
            }
            Self::Negated(column) => {
                let numbers = hosts.column(column)?;
                hosts.check_room(out)?;
                for (out, number) in out.iter_mut().zip(numbers) {
                    *out = 0.0 - number;
                }
            }
            Self::Constant(number) => {
                hosts.check_room(out)?;
                out.fill(number);
            }
        }
        Ok(())
    }
}
