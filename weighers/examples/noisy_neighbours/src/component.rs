//! What Ebbtide calls.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::{Limits, check};

wit_bindgen::generate!({ path: "wit", world: "filter-plugin" });

use exports::ebbtide::plugin::filter::{
    Column, Description, Guest, Hosts, Pair, Request, Verdicts,
};

struct Plugin;

impl Guest for Plugin {
    fn describe(settings: Vec<Pair>) -> Result<Description, String> {
        check(settings.iter().map(|pair| pair.key.as_str()))?;
        Limits::read(|key| value(&settings, key))?;
        let key = value(&settings, "metadata").unwrap_or("noise");
        Ok(Description { needs: vec![format!("number:{key}"), format!("has:{key}")] })
    }

    fn filter(settings: Vec<Pair>, request: Request, hosts: Hosts) -> Result<Verdicts, String> {
        let limits = Limits::read(|key| value(&settings, key))?;
        let [Column::Numbers(figures), Column::Numbers(known)] = hosts.columns.as_slice() else {
            return Err("these are not the columns that were asked for".to_owned());
        };
        let mut reasons = Reasons::default();
        let mut codes = Vec::with_capacity(figures.len());
        for (figure, known) in figures.iter().zip(known) {
            let figure = (*known > 0.0).then_some(*figure);
            codes.push(match limits.refusal(figure, request.preemptible) {
                None => 0,
                Some(reason) => reasons.code(reason),
            });
        }
        Ok(Verdicts { codes, reasons: reasons.texts })
    }
}

/// The texts of an answer. A figure can have as many texts as values, so that a text is found by
/// its hash.
#[derive(Default)]
struct Reasons {
    texts: Vec<String>,
    codes: HashMap<String, u32>,
}

impl Reasons {
    /// The number of a reason, counted from 1.
    fn code(&mut self, reason: String) -> u32 {
        let next = self.texts.len() as u32 + 1;
        match self.codes.entry(reason) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                self.texts.push(new.key().clone());
                *new.insert(next)
            }
        }
    }
}

fn value<'a>(pairs: &'a [Pair], key: &str) -> Option<&'a str> {
    let found = pairs.iter().find(|pair| pair.key == key);
    found.map(|pair| pair.value.as_str())
}

export!(Plugin);
