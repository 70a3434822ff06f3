//! Trace replays and their reports
