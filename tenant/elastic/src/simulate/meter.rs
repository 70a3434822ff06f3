//! Means over time: how many transient servers are up, how loaded the cluster is.

/// A value that changes in steps, and its integral over a window.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Meter {
    from_us: u64,
    until_us: u64,
    since_us: u64,
    value: f64,
    integral: f64,
}

impl Meter {
    /// Over this window; the value is 0 until it is set.
    pub(crate) fn new(from_us: u64, until_us: u64) -> Self {
        Self {
            from_us,
            until_us,
            since_us: from_us,
            value: 0.0,
            integral: 0.0,
        }
    }

    /// The value from now on.
    pub(crate) fn set(&mut self, now_us: u64, value: f64) {
        let now = now_us.clamp(self.from_us, self.until_us);
        self.integral += self.value * (now - self.since_us) as f64;
        self.since_us = now;
        self.value = value;
    }

    /// The mean over the window; the last value goes on to its end. Of a window without length it
    /// is the value.
    pub(crate) fn mean(&self) -> f64 {
        let length = (self.until_us - self.from_us) as f64;
        if length == 0.0 {
            return self.value;
        }
        (self.integral + self.value * (self.until_us - self.since_us) as f64) / length
    }
}

#[cfg(test)]
mod tests {
    use super::Meter;

    #[test]
    fn the_mean_counts_the_window_only() {
        let mut meter = Meter::new(10, 20);
        meter.set(0, 100.0);
        meter.set(10, 2.0);
        meter.set(15, 4.0);
        meter.set(30, 1_000.0);
        assert!((meter.mean() - 3.0).abs() < 1e-12);
    }
}
