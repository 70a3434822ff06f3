//! Price histories from CSV text.

use crate::error::CheckpointingError;
use crate::history::PriceHistory;
use ebbtide_model::Money;
use std::collections::HashMap;

/// The column with the times: seconds since 1970 in UTC.
const TIME: &str = "unix_ts_utc";
/// The column with the prices: dollars for an hour, at most six decimals.
const PRICE: &str = "price_usd_per_hour";
/// Times beyond this are milliseconds: in seconds it is the year 5138.
const LATEST: i64 = 100_000_000_000;

/// A price history with its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Series {
    /// The values of all columns that are not time or price, joined by dots:
    /// `us-east-1.linux.m1.xlarge`. Empty if there are none.
    pub name: String,
    pub history: PriceHistory,
    /// Rows that repeat the row before them, with the same time and price. They count once.
    pub repeated: RepeatedRows,
}

/// Rows that stand in a record more than once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RepeatedRows {
    /// How many rows are left out.
    pub count: u64,
    /// The line of the first of them.
    pub first_line: Option<u64>,
}

impl RepeatedRows {
    /// Leaves them out of rows that are in order of time.
    fn taken_out_of(rows: &mut Rows) -> Self {
        let mut repeated = Self::default();
        rows.dedup_by(|row, before| {
            let same = (row.1, row.2) == (before.1, before.2);
            if same {
                repeated.count += 1;
                repeated.first_line.get_or_insert(row.0);
            }
            same
        });
        repeated
    }
}

/// One series as it is read: (line, time, price).
type Rows = Vec<(u64, i64, Money)>;

/// Reads CSV with a header. The columns `unix_ts_utc` and `price_usd_per_hour` have to be there;
/// all others name the series. A price holds until the next row of its series; the last row of a
/// series says only when it ends. A row that stands twice with the same price counts once
/// ([`Series::repeated`]); another price at the same time is an error. A silence longer than
/// `gap_seconds` is refused as a hole in the record.
///
/// # Errors
/// [`CheckpointingError::Header`], [`CheckpointingError::Row`] for what cannot be read (NaN and
/// negative prices among it), and what [`PriceHistory::new`] refuses,
/// [`CheckpointingError::OneRow`] and [`CheckpointingError::Gap`], with series and line.
pub fn read_series(text: &[u8], gap_seconds: i64) -> Result<Vec<Series>, CheckpointingError> {
    let mut reader = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .from_reader(text);
    let header = reader
        .headers()
        .map_err(|error| unreadable(&error))?
        .clone();
    if header.is_empty() {
        return Err(CheckpointingError::Empty);
    }
    let column = |name: &'static str| {
        let mut names = header.iter();
        let place = names.position(|h| h.trim_start_matches('\u{feff}') == name);
        place.ok_or_else(|| CheckpointingError::Header {
            missing: name,
            found: header.iter().collect::<Vec<_>>().join(", "),
        })
    };
    let (time, price) = (column(TIME)?, column(PRICE)?);
    let mut found: Vec<(String, Rows)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for record in reader.records() {
        let record = record.map_err(|error| unreadable(&error))?;
        let line = record.position().map_or(0, csv::Position::line);
        let row = (
            line,
            time_of(record.get(time).unwrap_or_default(), line)?,
            price_of(record.get(price).unwrap_or_default(), line)?,
        );
        let others = record.iter().enumerate();
        let words = others.filter(|(i, _)| *i != time && *i != price);
        let name = words.map(|(_, word)| word).collect::<Vec<_>>().join(".");
        let place = *places.entry(name).or_insert_with_key(|name| {
            found.push((name.clone(), Rows::new()));
            found.len() - 1
        });
        if let Some((_, rows)) = found.get_mut(place) {
            rows.push(row);
        }
    }
    if found.is_empty() {
        return Err(CheckpointingError::Empty);
    }
    found
        .into_iter()
        .map(|(name, rows)| series(name, rows, gap_seconds))
        .collect()
}

fn series(name: String, mut rows: Rows, gap: i64) -> Result<Series, CheckpointingError> {
    let repeated = RepeatedRows::taken_out_of(&mut rows);
    let place = |i: usize| {
        let line = rows.get(i).map_or(0, |row| row.0);
        if name.is_empty() {
            format!("line {line}")
        } else {
            format!("{name}, line {line}")
        }
    };
    let Some(last) = rows.last().filter(|_| rows.len() > 1) else {
        return Err(CheckpointingError::OneRow { series: name });
    };
    let changes: Vec<(i64, Money)> = rows
        .iter()
        .map(|(_, time, price)| (*time, *price))
        .collect();
    let history = PriceHistory::placed(&changes, last.1, place)?;
    let spans = changes.windows(2).enumerate();
    for (i, pair) in spans {
        let [before, now] = pair else { continue };
        if now.0 - before.0 > gap {
            return Err(CheckpointingError::Gap {
                place: place(i + 1),
                time: now.0,
                days: (now.0 - before.0) as f64 / 86_400.0,
                allowed: gap as f64 / 86_400.0,
            });
        }
    }
    Ok(Series {
        name,
        history,
        repeated,
    })
}

fn time_of(text: &str, line: u64) -> Result<i64, CheckpointingError> {
    let wrong = |problem: &str| CheckpointingError::Row {
        line,
        problem: format!("{TIME} is {:?}; {problem}", short(text)),
    };
    let time: i64 = text
        .parse()
        .map_err(|_| wrong("it has to be whole seconds since 1970 in UTC"))?;
    if time < 0 {
        return Err(wrong("there were no spot prices before 1970"));
    }
    if time > LATEST {
        return Err(wrong("these must be milliseconds; seconds are wanted"));
    }
    Ok(time)
}

fn price_of(text: &str, line: u64) -> Result<Money, CheckpointingError> {
    text.parse().map_err(|_| CheckpointingError::Row {
        line,
        problem: format!(
            "{PRICE} is {:?}; it has to be dollars for an hour: not negative, at most six decimals",
            short(text)
        ),
    })
}

/// The beginning of a text, for messages.
fn short(text: &str) -> String {
    text.chars().take(40).collect()
}

fn unreadable(error: &csv::Error) -> CheckpointingError {
    CheckpointingError::Row {
        line: error.position().map_or(1, csv::Position::line),
        problem: match error.kind() {
            csv::ErrorKind::UnequalLengths {
                expected_len, len, ..
            } => format!("{len} columns where the header has {expected_len}"),
            csv::ErrorKind::Utf8 { .. } => "this is not UTF-8 text".to_owned(),
            _ => error.to_string(),
        },
    }
}
