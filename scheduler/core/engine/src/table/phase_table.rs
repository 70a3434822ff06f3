//! Launch times of all preemptible instances that could leave, stored for eight hosts side by side.
//!
//! Most cost modules count the time since launch in billing periods. For a host that is examined
//! only to be skipped, such a module needs to know how far each instance is into its period. Two
//! bytes an instance suffice for that. The table stores them as *phases*: the launch time modulo
//! the period, in 65,536ths of the period, rounded down. The phase of now minus the phase of the
//! launch, modulo 65,536, is the part of the period that an instance has used, with an error of at
//! most one unit.
//!
//! A row holds one instance of each of eight neighbouring hosts, so that one instruction works on
//! eight hosts. Row *j* of a host is the instance at position *j* of the host's list, where the
//! preemptible instances that could leave come first.

use super::HostIndex;

/// How many hosts stand side by side.
pub(crate) const WIDE: usize = 8;

/// The default billing period of phases, in milliseconds: one hour.
const DEFAULT_PERIOD_MS: i64 = 3_600_000;

/// Phases in a period.
pub(crate) const PHASES: i64 = 1 << 16;

/// Stands for a shape whose number is too large for a row.
pub(crate) const OTHER_SHAPE: u16 = u16::MAX;

/// Where the rows of eight hosts are.
#[derive(Debug, Clone, Copy, Default)]
struct Span {
    start: u32,
    rows: u32,
    room: u32,
}

/// One instance of each of eight hosts.
#[derive(Debug, Clone, Copy, Default)]
struct Shapes([u16; WIDE]);

/// See the module's text.
#[derive(Debug, Clone)]
pub(crate) struct PhaseTable {
    period_ms: i64,
    spans: Vec<Span>,
    phases: Vec<[u16; WIDE]>,
    shapes: Vec<Shapes>,
    /// Rows that belong to a span; the others are holes.
    held: usize,
    /// By host: no instance on it was launched after this, in milliseconds. Never launched counts
    /// as launched at the end of time.
    latest: Vec<[i64; WIDE]>,
    /// The largest of each row of the above.
    latest_of_eight: Vec<i64>,
    /// True once an instance was put that had been launched before 1970.
    ancient: bool,
}

impl Default for PhaseTable {
    fn default() -> Self {
        Self {
            period_ms: DEFAULT_PERIOD_MS,
            spans: Vec::new(),
            phases: Vec::new(),
            shapes: Vec::new(),
            held: 0,
            latest: Vec::new(),
            latest_of_eight: Vec::new(),
            ancient: false,
        }
    }
}

impl PhaseTable {
    /// The billing period in milliseconds.
    pub(crate) fn period_ms(&self) -> i64 {
        self.period_ms
    }

    /// Changes the billing period and clears the table. The caller has to put every instance again.
    pub(super) fn set_period_ms(&mut self, period_ms: i64) {
        let hosts = self.spans.len() * WIDE;
        *self = Self {
            period_ms,
            ..Self::default()
        };
        self.resize(hosts);
    }

    /// Room for so many host slots.
    pub(super) fn resize(&mut self, slots: usize) {
        let rows = slots.div_ceil(WIDE);
        self.spans.resize(rows, Span::default());
        self.latest.resize(rows, [i64::MIN; WIDE]);
        self.latest_of_eight.resize(rows, i64::MIN);
    }

    /// True if an instance may have been launched before 1970, where phases do not apply.
    pub(crate) fn has_ancient(&self) -> bool {
        self.ancient
    }

    /// The phase of a moment.
    pub(crate) fn phase_of(&self, millis: i64) -> u16 {
        let phase = i128::from(millis.rem_euclid(self.period_ms)) * i128::from(PHASES);
        u16::try_from(phase / i128::from(self.period_ms)).unwrap_or(u16::MAX)
    }

    /// The phases of eight hosts' instances, row by row. Rows beyond a host's last instance mean
    /// nothing.
    pub(crate) fn phases(&self, eight: usize) -> &[[u16; WIDE]] {
        let span = self.spans[eight];
        &self.phases[span.start as usize..(span.start + span.rows) as usize]
    }

    /// The phases and the numbers of the shapes of eight hosts' instances, row by row.
    pub(crate) fn rows(&self, eight: usize) -> impl Iterator<Item = (&[u16; WIDE], &[u16; WIDE])> {
        let span = self.spans[eight];
        let rows = span.start as usize..(span.start + span.rows) as usize;
        let shapes = self.shapes[rows.clone()].iter().map(|shapes| &shapes.0);
        self.phases[rows].iter().zip(shapes)
    }

    /// Phase and number of the shape of the first `count` instances of a host.
    pub(crate) fn of_host(
        &self,
        host: HostIndex,
        count: u32,
    ) -> impl Iterator<Item = (u16, u16)> + '_ {
        let (eight, lane) = (host.at() / WIDE, host.at() % WIDE);
        let span = self.spans[eight];
        let rows = span.start as usize..(span.start + span.rows.min(count)) as usize;
        self.phases[rows.clone()]
            .iter()
            .zip(&self.shapes[rows])
            .map(move |(phases, shapes)| (phases[lane], shapes.0[lane]))
    }

    /// True if every instance on the eight hosts was launched at or before this moment. False if
    /// one of them never launched.
    pub(crate) fn eight_launched_by(&self, eight: usize, millis: i64) -> bool {
        self.latest_of_eight[eight] <= millis
    }

    /// True if every instance on the host was launched at or before this moment. False if one of
    /// them never launched.
    pub(crate) fn launched_by(&self, host: HostIndex, millis: i64) -> bool {
        self.latest[host.at() / WIDE][host.at() % WIDE] <= millis
    }

    /// Puts an instance into a row of a host; rows before it are taken.
    pub(super) fn put(&mut self, host: HostIndex, row: usize, launched: Option<i64>, shape: u32) {
        let (eight, lane) = (host.at() / WIDE, host.at() % WIDE);
        self.reach(eight, super::index_of(row + 1));
        self.ancient |= launched.is_some_and(|millis| millis < 0);
        let at = self.spans[eight].start as usize + row;
        self.phases[at][lane] = launched.map_or(0, |millis| self.phase_of(millis));
        self.shapes[at].0[lane] = u16::try_from(shape).unwrap_or(OTHER_SHAPE);
        let latest = self.latest[eight][lane].max(launched.unwrap_or(i64::MAX));
        self.set_latest(host, latest);
    }

    /// Follows a host's instances when one has left: eight hosts have `most` at most now.
    pub(super) fn shrink(&mut self, host: HostIndex, most: u32) {
        let span = &mut self.spans[host.at() / WIDE];
        span.rows = span.rows.min(most);
    }

    /// Sets an upper bound of the launch times on a host.
    pub(super) fn set_latest(&mut self, host: HostIndex, latest: i64) {
        let (eight, lane) = (host.at() / WIDE, host.at() % WIDE);
        self.latest[eight][lane] = latest;
        self.latest_of_eight[eight] = self.latest[eight].iter().copied().fold(i64::MIN, i64::max);
    }

    /// True if this is when the last one on a host was launched.
    pub(super) fn is_latest(&self, host: HostIndex, launched: Option<i64>) -> bool {
        self.latest[host.at() / WIDE][host.at() % WIDE] == launched.unwrap_or(i64::MAX)
    }

    /// Makes room for so many rows.
    fn reach(&mut self, eight: usize, rows: u32) {
        let span = self.spans[eight];
        if rows > span.room {
            let room = rows.max(span.room + span.room / 2).max(4);
            let more = (room - span.room) as usize;
            let is_last = (span.start + span.room) as usize == self.phases.len();
            if !is_last {
                let taken = span.start as usize..(span.start + span.rows) as usize;
                self.spans[eight].start = super::index_of(self.phases.len());
                self.phases.extend_from_within(taken.clone());
                self.shapes.extend_from_within(taken);
            }
            let end = (self.spans[eight].start + room) as usize;
            self.phases.resize(end, [0; WIDE]);
            self.shapes.resize(end, Shapes::default());
            self.spans[eight].room = room;
            self.held += more;
        }
        self.spans[eight].rows = rows.max(span.rows);
        // Half of it may be holes, and not much more than that is spent on closing them.
        if self.phases.len() > 2 * self.held + 4096 {
            self.close_holes();
        }
    }

    fn close_holes(&mut self) {
        let mut phases = Vec::with_capacity(self.held);
        let mut shapes = Vec::with_capacity(self.held);
        for span in &mut self.spans {
            let taken = span.start as usize..(span.start + span.room) as usize;
            span.start = super::index_of(phases.len());
            phases.extend_from_slice(&self.phases[taken.clone()]);
            shapes.extend_from_slice(&self.shapes[taken]);
        }
        self.phases = phases;
        self.shapes = shapes;
    }
}
