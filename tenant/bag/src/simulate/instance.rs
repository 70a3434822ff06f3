//! One instance of the simulated world.

use super::{Bar, BarEnd, InstanceRun, Prices};
use crate::executor::VmId;
use crate::input::{Bag, slots_price};
use crate::map::Market;

/// A task that runs.
#[derive(Debug, Clone, Copy)]
struct RunningTask {
    task: usize,
    begin: u64,
    /// When it is done, and when it saves its state next with how much work; seconds since the
    /// begin as long as nothing freezes.
    done: u64,
    saves: Option<(u64, u64)>,
}

/// What happens next on an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InstanceEvent {
    Up,
    Saves { task: usize, work: u64 },
    Done { task: usize },
}

#[derive(Debug)]
pub(super) struct SimulatedInstance {
    pub(super) vm: VmId,
    pub(super) ty: usize,
    pub(super) market: Market,
    from: u64,
    to: Option<u64>,
    /// When it is up, unless it is.
    boots: Option<u64>,
    cores: Vec<Option<RunningTask>>,
    frozen_since: Option<u64>,
    frozen: Vec<(u64, u64)>,
    bars: Vec<Bar>,
}

impl SimulatedInstance {
    pub(super) fn launch(
        bag: &Bag,
        vm: VmId,
        ty: usize,
        market: Market,
        cores: usize,
        now: u64,
    ) -> Self {
        Self {
            vm,
            ty,
            market,
            from: now,
            to: None,
            boots: Some(now + bag.rules().boot),
            cores: vec![None; cores],
            frozen_since: None,
            frozen: Vec::new(),
            bars: Vec::new(),
        }
    }

    pub(super) fn is_gone(&self) -> bool {
        self.to.is_some()
    }

    pub(super) fn is_frozen(&self) -> bool {
        self.frozen_since.is_some()
    }

    /// The next thing that happens here, if nothing else does before; the first core of equals.
    pub(super) fn next(&self) -> Option<(u64, InstanceEvent)> {
        if self.is_gone() || self.is_frozen() {
            return None;
        }
        if let Some(at) = self.boots {
            return Some((at, InstanceEvent::Up));
        }
        let events = self.cores.iter().flatten().map(|r| match r.saves {
            Some((at, work)) if at < r.done => (at, InstanceEvent::Saves { task: r.task, work }),
            _ => (r.done, InstanceEvent::Done { task: r.task }),
        });
        events.min_by_key(|(at, _)| *at)
    }

    pub(super) fn happened(&mut self, bag: &Bag, next: InstanceEvent) {
        match next {
            InstanceEvent::Up => self.boots = None,
            InstanceEvent::Saves { task, work } => {
                let slowdown = bag.types()[self.ty].slowdown;
                if let Some(running) = self.running(task)
                    && let Some((at, _)) = running.saves
                    && let Some(c) = bag.tasks()[task].checkpoints
                {
                    let more = ((c.interval + c.cost) as f64 * slowdown).ceil() as u64;
                    running.saves = Some((at + more.max(1), work + c.interval));
                }
            }
            InstanceEvent::Done { task } => {
                let done = self.running(task).map_or(0, |running| running.done);
                self.stop(task, done, BarEnd::Finished);
            }
        }
    }

    fn running(&mut self, task: usize) -> Option<&mut RunningTask> {
        self.cores.iter_mut().flatten().find(|r| r.task == task)
    }

    pub(super) fn run(&mut self, bag: &Bag, task: usize, core: usize, saved: u64, now: u64) {
        let seconds = bag
            .rest(task, self.ty, saved)
            .unwrap_or(crate::input::LONGEST);
        let slowdown = bag.types()[self.ty].slowdown;
        let saves = bag.tasks()[task].checkpoints.map(|c| {
            let first = ((c.interval + c.cost) as f64 * slowdown).ceil() as u64;
            (now + first.max(1), saved + c.interval)
        });
        self.cores[core] = Some(RunningTask {
            task,
            begin: now,
            done: now + seconds,
            saves,
        });
    }

    pub(super) fn stop(&mut self, task: usize, now: u64, end: BarEnd) {
        let core = self
            .cores
            .iter()
            .position(|r| r.as_ref().is_some_and(|r| r.task == task));
        if let Some(core) = core
            && let Some(running) = self.cores[core].take()
        {
            self.bars.push(Bar {
                task,
                core,
                from: running.begin,
                to: now,
                end,
            });
        }
    }

    pub(super) fn freeze(&mut self, now: u64) {
        self.frozen_since = Some(now);
    }

    pub(super) fn thaw(&mut self, now: u64) {
        let Some(since) = self.frozen_since.take() else {
            return;
        };
        let slept = now - since;
        self.frozen.push((since, now));
        for running in self.cores.iter_mut().flatten() {
            running.done += slept;
            if let Some((at, _)) = &mut running.saves {
                *at += slept;
            }
        }
        if let Some(at) = &mut self.boots {
            *at += slept;
        }
    }

    pub(super) fn end(&mut self, now: u64) {
        if let Some(since) = self.frozen_since.take() {
            self.frozen.push((since, now));
        }
        let tasks: Vec<usize> = self.cores.iter().flatten().map(|r| r.task).collect();
        for task in tasks {
            self.stop(task, now, BarEnd::Lost);
        }
        self.to = Some(now);
    }

    /// The bill.
    pub(super) fn paid(mut self, bag: &Bag, prices: &Prices, now: u64) -> InstanceRun {
        if !self.is_gone() {
            self.end(now);
        }
        let to = self.to.unwrap_or(now);
        let slept: u64 = self.frozen.iter().map(|(from, to)| to - from).sum();
        let slot = bag.rules().slot;
        let slots = (to - self.from - slept).div_ceil(slot);
        let mut frozen = self.frozen.iter().peekable();
        let mut begin = self.from;
        if !prices.0.contains_key(&self.ty) || self.market == Market::OnDemand {
            let hourly = prices.at(bag, self.ty, self.market, 0);
            let price = slots_price(hourly, slots, slot);
            return self.billed(to, slots, price);
        }
        let mut price: u128 = 0;
        for _ in 0..slots {
            // A slot begins when so much was used; what was frozen before moves it.
            while let Some((from, to)) = frozen.next_if(|(from, _)| *from <= begin) {
                begin += to - from;
            }
            let hourly = prices.at(bag, self.ty, self.market, begin);
            price += u128::from(hourly.micros()) * u128::from(slot);
            let mut left = slot;
            while let Some((from, to)) = frozen.next_if(|(from, _)| *from < begin + left) {
                left -= from - begin;
                begin = *to;
            }
            begin += left;
        }
        let price = u64::try_from(price.div_ceil(3600)).unwrap_or(u64::MAX);
        self.billed(to, slots, price)
    }

    fn billed(mut self, to: u64, slots: u64, price: u64) -> InstanceRun {
        self.bars.sort_by_key(|bar| (bar.core, bar.from, bar.task));
        InstanceRun {
            vm: self.vm,
            ty: self.ty,
            market: self.market,
            from: self.from,
            to,
            frozen: self.frozen,
            slots,
            price,
            bars: self.bars,
        }
    }
}
