//! Limits of one call of a plugin.

use crate::WasmError;

/// Limits of one call of a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SandboxLimits {
    /// Memory in bytes. Default: 64 MiB; components with an interpreter inside need some of it
    /// before they begin.
    pub memory_bytes: usize,
    /// Units of work, whatever the number of rows. A unit is about one instruction: a thousand
    /// million are a second or less. Default: 20 million.
    pub work: u64,
    /// Units of work for each row besides. Default: 20,000, which is a thousand times what a simple
    /// weigher needs.
    pub work_per_row: u64,
}

impl Default for SandboxLimits {
    fn default() -> Self {
        Self {
            memory_bytes: 64 << 20,
            work: 20_000_000,
            work_per_row: 20_000,
        }
    }
}

/// Below that no component begins.
const LEAST_MEMORY: usize = 64 << 10;
/// What WebAssembly's 32-bit memories can have.
const MOST_MEMORY: usize = 4 << 30;

impl SandboxLimits {
    /// Checks the ranges.
    ///
    /// # Errors
    /// [`WasmError::Limit`].
    pub fn check(&self) -> Result<(), WasmError> {
        if !(LEAST_MEMORY..=MOST_MEMORY).contains(&self.memory_bytes) {
            return Err(WasmError::Limit {
                key: "memory_bytes",
                problem: format!("{} is not between 64 KiB and 4 GiB", self.memory_bytes),
            });
        }
        if self.work == 0 {
            return Err(WasmError::Limit {
                key: "work",
                problem: "a plugin that may not do anything cannot answer".to_owned(),
            });
        }
        Ok(())
    }

    /// The units of work of a call over so many rows.
    #[must_use]
    pub fn work_of(&self, rows: usize) -> u64 {
        let rows = u64::try_from(rows).unwrap_or(u64::MAX);
        self.work
            .saturating_add(self.work_per_row.saturating_mul(rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_numbers_do_not_wrap_round() {
        let limits = SandboxLimits {
            work_per_row: u64::MAX,
            ..SandboxLimits::default()
        };
        assert_eq!(limits.work_of(usize::MAX), u64::MAX);
    }

    #[test]
    fn limits_that_no_plugin_can_meet_are_refused_by_name() {
        let none = SandboxLimits {
            work: 0,
            ..SandboxLimits::default()
        };
        assert!(none.check().unwrap_err().to_string().contains("work"));
        let tiny = SandboxLimits {
            memory_bytes: 1,
            ..SandboxLimits::default()
        };
        assert!(
            tiny.check()
                .unwrap_err()
                .to_string()
                .contains("memory_bytes")
        );
        assert!(SandboxLimits::default().check().is_ok());
    }
}
