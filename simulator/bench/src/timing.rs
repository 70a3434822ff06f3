//! Wall and processor time of a piece of work.

use ebbtide_runtime::clock;
use std::time::Duration;

/// What something gives, and how long it took.
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let began = clock::instant();
    let result = work();
    (result, began.elapsed())
}

/// How long something took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ElapsedTime {
    /// On the clock at the wall.
    pub wall: Duration,
    /// Processor time of this thread. Other threads and processes do not count.
    pub cpu: Duration,
}

/// As [`timed`], with the processor time of this thread.
pub fn timed_cpu<T>(work: impl FnOnce() -> T) -> (T, ElapsedTime) {
    let before = thread_cpu();
    let (result, wall) = timed(work);
    let cpu = thread_cpu().saturating_sub(before);
    (result, ElapsedTime { wall, cpu })
}

/// Processor time that this thread has used so far.
fn thread_cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u32::try_from(time.tv_nsec).unwrap_or(0);
    Duration::new(seconds, nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_processor_time_and_no_more_than_wall_time() {
        let (sum, took) =
            timed_cpu(|| (0..2_000_000_u64).fold(0, |sum, n| std::hint::black_box(sum ^ n)));
        assert!(sum < u64::MAX);
        assert!(took.cpu > Duration::ZERO);
        // The processor's clock is read around the wall's.
        assert!(took.cpu <= took.wall + Duration::from_millis(1), "{took:?}");
    }
}
