//! How far a measurement is. It is told between the times that are measured, never within them.

/// Receiver of progress reports.
pub trait Progress {
    /// Something else is done now.
    fn begin(&mut self, what: &str, total: u64);
    /// So much of it is done.
    fn set(&mut self, done: u64);
}

/// Ignores all progress reports.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoProgress;

impl Progress for NoProgress {
    fn begin(&mut self, _what: &str, _total: u64) {}
    fn set(&mut self, _done: u64) {}
}
