//! Which hosts fit: the capacity filter and the tiers of all hosts in one pass over the columns, 64
//! hosts at a time.
//!
//! The range of a block often shows that all of its hosts fit, or none. The single hosts are read
//! only if it does not.

use crate::state::DecisionState;
use crate::table::{BLOCK, Blocked, ClassIndex, CompactClass, HostIndex, LIMIT};
use ebbtide_model::host_set::HostSet;

/// One class that is asked for.
#[derive(Clone, Copy)]
pub(super) struct CompactDemand<'a> {
    pub(super) class: &'a CompactClass,
    pub(super) index: ClassIndex,
    /// For the whole bundle; above zero.
    pub(super) amount: i32,
}

/// Which of the columns of a class is compared.
pub(super) type StateColumn = for<'a> fn(&'a CompactClass) -> &'a Blocked<i32>;

pub(super) const NORMAL: StateColumn = |class| &class.normal;
pub(super) const FULL: StateColumn = |class| &class.full;
pub(super) const FUTURE: StateColumn = |class| &class.future;

/// The requested amounts for the whole bundle. `None` if an amount exceeds what the columns can
/// hold, or if no host has a class.
pub(super) fn wanted<'a>(state: &DecisionState<'a>) -> Option<Vec<CompactDemand<'a>>> {
    let needs = state.ask.needs.iter();
    let all = needs.map(|need| {
        let index = state.table.class_index(need.class)?;
        let class = state.table.compact(index);
        let amount = need.amount.checked_mul(state.ask.bundle)?;
        let amount = i32::try_from(amount).ok().filter(|a| *a < LIMIT)?;
        Some(CompactDemand {
            class,
            index,
            amount,
        })
    });
    all.collect()
}

/// Those of `hosts` on which everything fits.
pub(super) fn fitting(
    hosts: &HostSet,
    wanted: &[CompactDemand<'_>],
    which: StateColumn,
) -> HostSet {
    let mut fit = hosts.none_like();
    for (block, &here) in hosts.words().iter().enumerate() {
        if here == 0 {
            continue;
        }
        let (mut all, mut none) = (true, false);
        for want in wanted {
            let column = which(want.class);
            all &= column.lowest(block) >= want.amount;
            none |= column.highest(block) < want.amount;
        }
        fit.words_mut()[block] = if all {
            here
        } else if none {
            0
        } else {
            here & fitting_block(wanted, which, block)
        };
    }
    fit
}

fn fitting_block(wanted: &[CompactDemand<'_>], which: StateColumn, block: usize) -> u64 {
    let mut signs = [0; BLOCK];
    for want in wanted {
        let free = which(want.class).block(block);
        for (sign, free) in signs.iter_mut().zip(free) {
            *sign |= free - want.amount;
        }
    }
    !negative(&signs)
}

/// One bit for each number below zero.
fn negative(numbers: &[i32; BLOCK]) -> u64 {
    let mut bytes = [0u8; BLOCK];
    for (byte, number) in bytes.iter_mut().zip(numbers) {
        *byte = u8::from(*number < 0);
    }
    gather(&bytes)
}

/// Sixty-four zeros and ones as bits. The product moves the ones of eight bytes side by side into
/// the highest byte.
pub(super) fn gather(bytes: &[u8; BLOCK]) -> u64 {
    let mut word = 0;
    for (at, eight) in bytes.as_chunks::<8>().0.iter().enumerate() {
        let ones = u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        word |= ones << (8 * at);
    }
    word
}

/// Recomputes the result one by one for hosts that the request has already changed.
pub(super) fn amend(
    fit: &mut HostSet,
    hosts: &HostSet,
    state: &DecisionState<'_>,
    fits: impl Fn(HostIndex) -> bool,
) {
    for (host, _) in state.touched() {
        if hosts.has(host.at()) {
            fit.put(host.at(), fits(host));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_stand_where_the_bytes_are() {
        for word in [
            0,
            1,
            1 << 63,
            0x8000_0001_0004_2001,
            u64::MAX,
            0x0123_4567_89ab_cdef,
        ] {
            let bytes = std::array::from_fn(|at| u8::from(word >> at & 1 == 1));
            assert_eq!(gather(&bytes), word);
            let numbers = std::array::from_fn(|at| if word >> at & 1 == 1 { -1 } else { 0 });
            assert_eq!(negative(&numbers), word);
        }
    }
}
