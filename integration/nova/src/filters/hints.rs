//! Scheduler hints (`RequestSpec.get_scheduler_hint`).

use crate::model::RequestSpec;

/// The UUIDs of a hint; `None` where the hint is missing, empty, or one empty text: Nova looks at
/// no host then.
pub(super) fn uuids<'a>(spec: &'a RequestSpec, name: &str) -> Option<&'a [String]> {
    match spec.hint(name) {
        None | Some([]) => None,
        Some([one]) if one.is_empty() => None,
        some => some,
    }
}
