use super::{Orders, misbehave};

wit_bindgen::generate!({ path: "../../../wit", world: "weigher-plugin" });

use exports::ebbtide::plugin::weigher::{Column, Description, Guest, Hosts, Pair, Request};

struct Naughty;

fn orders(settings: Vec<Pair>) -> Orders {
    Orders(settings.into_iter().map(|pair| (pair.key, pair.value)).collect())
}

impl Guest for Naughty {
    fn describe(settings: Vec<Pair>) -> Result<Description, String> {
        let orders = orders(settings);
        if orders.get("when") == "describe" {
            misbehave(&orders, 0)?;
        }
        let needs = orders.get("needs").split(' ').filter(|name| !name.is_empty());
        let number = |key: &str| orders.get(key).parse().ok();
        Ok(Description {
            default_multiplier: number("multiplier").unwrap_or(1.0),
            needs: needs.map(str::to_owned).collect(),
            min: number("min"),
            max: number("max"),
        })
    }

    fn weigh(settings: Vec<Pair>, request: Request, hosts: Hosts) -> Result<Vec<f64>, String> {
        let orders = orders(settings);
        let rows = hosts.len as usize;
        match orders.get("do") {
            // The length of what it sees of each host, as text.
            "tell" => Err(format!("{request:?} {hosts:?}")),
            "sum" => Ok((0..rows).map(|row| hosts.columns.iter().map(|column| value(column, row)).sum()).collect()),
            _ => misbehave(&orders, rows),
        }
    }
}

fn value(column: &Column, row: usize) -> f64 {
    match column {
        Column::Numbers(numbers) => numbers[row],
        Column::Texts(texts) => texts.texts[texts.codes[row] as usize].len() as f64,
        Column::Groups(groups) => {
            let rows = groups.offsets[row] as usize..groups.offsets[row + 1] as usize;
            groups.numbers[rows].iter().sum()
        }
    }
}

export!(Naughty);
