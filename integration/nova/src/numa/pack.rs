//! Which host threads a pinned guest cell gets (`_pack_instance_onto_cores`).
//!
//! Cores with more free threads come first, so that guests spread over cores. `isolate` takes one
//! thread of each wholly free core, `require` takes only threads that share a core, `prefer` (also
//! the default) falls back to any free threads.

use crate::fault::NovaException;
use crate::model::{InstanceNumaCell, NumaCell};
use std::collections::BTreeSet;

/// Pairs of guest CPU and host CPU.
type Pinning = Vec<(i64, i64)>;

/// Pins the guest cell's dedicated CPUs, and one more for the emulator if asked, and gives it the
/// host cell's number. False if there is no way; the guest cell then is as it was.
///
/// # Errors
/// `ValueError` if the host cell names no thread siblings at all.
pub(super) fn pack(
    host: &NumaCell,
    guest: &mut InstanceNumaCell,
    reserved: usize,
) -> Result<bool, NovaException> {
    let Some(most_threads) = host.siblings.iter().map(|core| core.len()).max() else {
        return Err(NovaException::new(
            "ValueError",
            "the host cell names no thread siblings",
        ));
    };
    let threads_per_core = most_threads.max(1);
    let cores: Vec<Vec<i64>> = host
        .free_siblings()
        .into_iter()
        .filter(|core| !core.is_empty())
        .collect();
    let found = match guest.cpu_thread_policy.as_deref() {
        Some("isolate") => isolate(host, guest, &cores, threads_per_core, reserved),
        Some("require") if threads_per_core <= 1 => None,
        policy => share(guest, &cores, policy == Some("require"), reserved),
    };
    let Some((pinning, cpuset_reserved)) = found else {
        return Ok(false);
    };
    for (vcpu, pcpu) in pinning {
        guest.pin(vcpu, pcpu);
    }
    guest.id = host.id;
    guest.cpuset_reserved = cpuset_reserved;
    Ok(true)
}

/// One thread of each free core; the others stay idle.
fn isolate(
    host: &NumaCell,
    guest: &InstanceNumaCell,
    cores: &[Vec<i64>],
    threads_per_core: usize,
    reserved: usize,
) -> Option<(Pinning, Option<BTreeSet<i64>>)> {
    let whole: Vec<&Vec<i64>> = with_threads(cores, threads_per_core);
    if !cores.iter().any(|core| core.len() >= threads_per_core) {
        return None;
    }
    // Only hosts with the old `vcpu_pin_set` list the same CPUs as floating and dedicated; new ones
    // with threads are refused.
    if threads_per_core != 1 && host.pcpuset != host.cpuset {
        return None;
    }
    let pinning = assign(1, &whole, guest)?;
    let kept = keep_back(cores, &pinning, reserved, true);
    if pinning.is_empty() || (reserved > 0 && kept.is_none()) {
        return None;
    }
    Some((pinning, kept))
}

/// `require`, and `prefer` with its fallback.
fn share(
    guest: &InstanceNumaCell,
    cores: &[Vec<i64>],
    require: bool,
    reserved: usize,
) -> Option<(Pinning, Option<BTreeSet<i64>>)> {
    let mut pinning: Option<Pinning> = None;
    let mut kept = None;
    let most = cores.iter().map(Vec::len).max().unwrap_or(0);
    for each in (1..=most).rev() {
        if require && each <= 1 {
            continue;
        }
        pinning = assign(each, &with_threads(cores, each), guest);
        kept = pinning
            .as_ref()
            .and_then(|pinning| keep_back(cores, pinning, reserved, false));
        if pinning.is_some() && (reserved == 0 || kept.is_some()) {
            break;
        }
    }
    if !require && pinning.as_ref().is_none_or(Vec::is_empty) {
        // Every thread as a core of its own.
        let single: Vec<Vec<i64>> = cores.iter().flatten().map(|&cpu| vec![cpu]).collect();
        pinning = assign(1, &single.iter().collect::<Vec<_>>(), guest);
        kept = pinning
            .as_ref()
            .and_then(|pinning| keep_back(&single, pinning, reserved, false));
    }
    let pinning = pinning?;
    if reserved > 0 && kept.is_none() {
        return None;
    }
    Some((pinning, kept))
}

/// Cores with at least so many free threads.
fn with_threads(cores: &[Vec<i64>], threads: usize) -> Vec<&Vec<i64>> {
    cores.iter().filter(|core| core.len() >= threads).collect()
}

/// Guest CPUs, ascending, onto the first so many threads of each core.
fn assign(threads: usize, cores: &[&Vec<i64>], guest: &InstanceNumaCell) -> Option<Pinning> {
    if threads * cores.len() < guest.pcpuset.len() {
        return None;
    }
    let usable = cores
        .iter()
        .flat_map(|core| core.iter().take(threads).copied());
    Some(guest.pcpuset.iter().copied().zip(usable).collect())
}

/// The host CPUs kept for the emulator: the first that the pinning leaves. `None` if none are asked
/// for or none are left.
fn keep_back(
    cores: &[Vec<i64>],
    pinning: &Pinning,
    reserved: usize,
    isolate: bool,
) -> Option<BTreeSet<i64>> {
    if pinning.is_empty() || reserved == 0 {
        return None;
    }
    let mut usable: Vec<Vec<i64>> = cores.to_vec();
    for (_, pcpu) in pinning {
        let mut next = 0;
        while next < usable.len() {
            if usable[next].contains(pcpu) {
                if isolate {
                    // Removed by value while walking, as Nova does: the first alike goes and the
                    // next one is stepped over.
                    let alike = usable.iter().position(|core| *core == usable[next]);
                    usable.remove(alike.unwrap_or(next));
                } else {
                    usable[next].retain(|cpu| cpu != pcpu);
                }
            }
            next += 1;
        }
    }
    let kept: BTreeSet<i64> = usable.into_iter().flatten().take(reserved).collect();
    (!kept.is_empty()).then_some(kept)
}

impl InstanceNumaCell {
    fn pin(&mut self, vcpu: i64, pcpu: i64) {
        let pinning = self.cpu_pinning.get_or_insert_default();
        match pinning.iter_mut().find(|(guest, _)| *guest == vcpu) {
            Some(pair) => pair.1 = pcpu,
            None => pinning.push((vcpu, pcpu)),
        }
    }
}
