//! What Ebbtide calls.

use crate::{Licence, Question, allowed, check, licences};

wit_bindgen::generate!({ path: "wit", world: "filter-plugin" });

use exports::ebbtide::plugin::filter::{
    Column, Description, Guest, Hosts, Pair, Request, Verdicts,
};

struct Plugin;

impl Guest for Plugin {
    fn describe(settings: Vec<Pair>) -> Result<Description, String> {
        check(settings.iter().map(|pair| pair.key.as_str()))?;
        read(&settings)?;
        Ok(Description {
            needs: vec!["text:licence".to_owned(), "number:licence_seat".to_owned()],
        })
    }

    fn filter(settings: Vec<Pair>, request: Request, hosts: Hosts) -> Result<Verdicts, String> {
        let known = read(&settings)?;
        let key = value(&settings, "extra_spec").unwrap_or("licence");
        let Some(licence) = value(&request.properties, &format!("extra_spec:{key}")) else {
            let codes = vec![0; hosts.len as usize];
            return Ok(Verdicts { codes, reasons: Vec::new() });
        };
        let [Column::Texts(texts), Column::Numbers(seats)] = hosts.columns.as_slice() else {
            return Err("these are not the columns that were asked for".to_owned());
        };
        let asked = Question { licence, hosts: allowed(&known, licence, &request.project_id) };
        let mut reasons: Vec<String> = Vec::new();
        let mut codes = Vec::with_capacity(seats.len());
        for (code, seat) in texts.codes.iter().zip(seats) {
            codes.push(match asked.refusal(&texts.texts[*code as usize], *seat) {
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

fn read(settings: &[Pair]) -> Result<Vec<Licence>, String> {
    licences(value(settings, "hosts"))
}

fn value<'a>(pairs: &'a [Pair], key: &str) -> Option<&'a str> {
    let found = pairs.iter().find(|pair| pair.key == key);
    found.map(|pair| pair.value.as_str())
}

export!(Plugin);
