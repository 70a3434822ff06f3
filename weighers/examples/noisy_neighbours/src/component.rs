//! What Ebbtide calls.

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
        let mut reasons: Vec<String> = Vec::new();
        let mut codes = Vec::with_capacity(figures.len());
        for (figure, known) in figures.iter().zip(known) {
            let figure = (*known > 0.0).then_some(*figure);
            codes.push(match limits.refusal(figure, request.preemptible) {
                None => 0,
                Some(reason) => place(&mut reasons, reason),
            });
        }
        Ok(Verdicts { codes, reasons })
    }
}

/// The number of a reason, counted from 1.
fn place(reasons: &mut Vec<String>, reason: String) -> u32 {
    let known = reasons.iter().position(|known| *known == reason);
    let at = known.unwrap_or_else(|| {
        reasons.push(reason);
        reasons.len() - 1
    });
    at as u32 + 1
}

fn value<'a>(pairs: &'a [Pair], key: &str) -> Option<&'a str> {
    let found = pairs.iter().find(|pair| pair.key == key);
    found.map(|pair| pair.value.as_str())
}

export!(Plugin);
