use super::{Orders, misbehave};

wit_bindgen::generate!({ path: "../../../wit", world: "filter-plugin" });

use exports::ebbtide::plugin::filter::{Column, Description, Guest, Hosts, Pair, Request, Verdicts};

struct Naughty;

fn orders(settings: Vec<Pair>) -> Orders {
    Orders(settings.into_iter().map(|pair| (pair.key, pair.value)).collect())
}

impl Guest for Naughty {
    fn describe(settings: Vec<Pair>) -> Result<Description, String> {
        let orders = orders(settings);
        let needs = orders.get("needs").split(' ').filter(|name| !name.is_empty());
        Ok(Description { needs: needs.map(str::to_owned).collect() })
    }

    fn filter(settings: Vec<Pair>, request: Request, hosts: Hosts) -> Result<Verdicts, String> {
        let orders = orders(settings);
        let rows = hosts.len as usize;
        let reasons = vec!["too few processors".to_owned()];
        match orders.get("do") {
            "tell" => Err(format!("{request:?} {hosts:?}")),
            "half" => Ok(Verdicts { codes: vec![0; rows / 2], reasons }),
            "unreasonable" => Ok(Verdicts { codes: vec![2; rows], reasons }),
            // Refuses hosts whose number is below 2.
            "few" => {
                let [Column::Numbers(numbers)] = hosts.columns.as_slice() else {
                    return Err("not one column of numbers".to_owned());
                };
                let codes = numbers.iter().map(|number| u32::from(*number < 2.0)).collect();
                Ok(Verdicts { codes, reasons })
            }
            _ => {
                let numbers = misbehave(&orders, rows)?;
                let codes = numbers.into_iter().map(|number| number as u32 % 2).collect();
                Ok(Verdicts { codes, reasons })
            }
        }
    }
}

export!(Naughty);
