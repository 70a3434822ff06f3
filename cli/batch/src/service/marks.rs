//! Marks and results that attempts leave in the directories of works.

use ebbtide_batch::script::{directories, mark_path, result_path, state_path};
use ebbtide_batch::{AttemptResult, Book, Mark, MemberId, Work, WorkId};
use ebbtide_run::{Checkpoint, STATE_FILE, read_record};
use std::collections::{BTreeMap, BTreeSet};

/// The marks of all works that are open, read anew at each look.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    /// Names in the directory of marks, by work.
    names: BTreeMap<WorkId, BTreeSet<String>>,
    /// Works whose directory cannot be read.
    unreadable: BTreeSet<WorkId>,
    /// What a mark says; a mark never changes.
    known: BTreeMap<(WorkId, MemberId), u32>,
}

impl Marks {
    /// Reads the directories of the works that are open; the first that cannot be read.
    pub(crate) fn read(&mut self, book: &Book, now: i64) -> Option<(String, std::io::Error)> {
        self.names.clear();
        self.unreadable.clear();
        let mut first = None;
        for (id, one) in &book.works {
            if one.state(now).is_over() && one.running().next().is_none() {
                continue;
            }
            match names(&one.work) {
                Ok(names) => {
                    self.names.insert(*id, names);
                }
                Err(error) => {
                    self.unreadable.insert(*id);
                    first.get_or_insert_with(|| (one.work.dir.display().to_string(), error));
                }
            }
        }
        first
    }

    /// Reads what new marks say.
    pub(crate) fn learn(&mut self, book: &Book) {
        for (id, names) in &self.names {
            let Some(one) = book.works.get(id) else {
                continue;
            };
            for member in one.work.members() {
                let key = (*id, member);
                if self.known.contains_key(&key) || !names.contains(&one.work.member_name(member)) {
                    continue;
                }
                if let Some(attempt) = number(&mark_path(&one.work, member)) {
                    self.known.insert(key, attempt);
                }
            }
        }
    }

    /// Takes a member for done by an attempt.
    pub(crate) fn learn_one(&mut self, id: WorkId, member: MemberId, attempt: u32) {
        self.known.entry((id, member)).or_insert(attempt);
    }

    pub(crate) fn mark(&self, id: WorkId, member: MemberId) -> Mark {
        match self.known.get(&(id, member)) {
            Some(attempt) => Mark::DoneBy(*attempt),
            None if self.unreadable.contains(&id) => Mark::Unknown,
            None => Mark::None,
        }
    }
}

/// The names of the marks of a work. Makes its directories, if they are not there yet.
fn names(work: &Work) -> std::io::Result<BTreeSet<String>> {
    for dir in directories(work) {
        std::fs::create_dir_all(dir)?;
    }
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(work.dir.join("done"))? {
        names.insert(entry?.file_name().to_string_lossy().into_owned());
    }
    Ok(names)
}

fn number<T: std::str::FromStr>(path: &str) -> Option<T> {
    let text = std::fs::read_to_string(path).ok()?;
    text.trim().parse().ok()
}

/// What an attempt left.
pub(crate) fn result(work: &Work, member: MemberId, attempt: u32) -> AttemptResult {
    let newest = newest(&format!("{}/{STATE_FILE}", state_path(work, member)));
    AttemptResult {
        exit: number(&result_path(work, member, attempt)),
        saved: newest.map_or(0, |one| i64::try_from(one.work.0).unwrap_or(0)),
        checkpoint: newest.map_or(0, |one| one.id),
    }
}

/// The newest complete checkpoint of `ebbtide run`.
fn newest(path: &str) -> Option<Checkpoint> {
    read_record(&std::fs::read(path).ok()?).ok()?.newest()
}
