//! The keys of a server's metadata that tell its owner, and the guest, what will happen and what
//! has happened.

use super::behaviour_word;
use crate::driver::GuestNotice;
use ebbtide_model::server_metadata::{
    EVACUATED_AT, EVACUATED_HOW, NOTICE, NOTICE_DEADLINE, NOTICE_REASON,
};
pub(super) use ebbtide_model::server_metadata::{NOTICE_EVACUATION, RELEASE};
use ebbtide_model::{EvacuationId, Timestamp};
use std::collections::BTreeMap;

/// Nova's limit for a value, in characters.
const MAX_VALUE: usize = 255;

pub(super) type MetadataPairs = BTreeMap<String, String>;

/// What a notice sets.
pub(super) fn pairs(notice: &GuestNotice, reason: &str) -> MetadataPairs {
    let pairs = [
        (NOTICE, behaviour_word(notice.behaviour).to_owned()),
        (NOTICE_DEADLINE, notice.not_before.to_string()),
        (NOTICE_EVACUATION, notice.evacuation_id.to_string()),
        (NOTICE_REASON, reason.chars().take(MAX_VALUE).collect()),
    ];
    pairs.map(|(key, value)| (key.to_owned(), value)).into()
}

/// What stays with a server that was evacuated and still exists.
pub(super) fn evacuated(how: &str, at: Timestamp) -> MetadataPairs {
    let pairs = [
        (EVACUATED_HOW, how.to_owned()),
        (EVACUATED_AT, at.to_string()),
    ];
    pairs.map(|(key, value)| (key.to_owned(), value)).into()
}

/// The evacuation of which the metadata tells.
pub(super) fn evacuation_in(metadata: &MetadataPairs) -> Option<EvacuationId> {
    metadata.get(NOTICE_EVACUATION)?.parse().ok()
}

/// The evacuation for which the tenant needs no more time.
pub(super) fn released(metadata: &MetadataPairs) -> Option<EvacuationId> {
    let evacuation = evacuation_in(metadata)?;
    let word = metadata.get(RELEASE)?.trim();
    let meant = word.eq_ignore_ascii_case("now") || word.parse() == Ok(evacuation);
    meant.then_some(evacuation)
}

/// The keys of a notice that are there, the evacuation last.
pub(super) fn keys_to_remove(metadata: &MetadataPairs) -> impl Iterator<Item = &'static str> + '_ {
    [
        NOTICE,
        NOTICE_DEADLINE,
        NOTICE_REASON,
        RELEASE,
        NOTICE_EVACUATION,
    ]
    .into_iter()
    .filter(|key| metadata.contains_key(*key))
}
