//! `ebbtide-manage config explain`.

use super::{ExplainArgs, keys};
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::json::Json;
use ebbtide_shell::output::{Details, Format, Listing, TableCell, text};
use keys::{ConfigKind, Key, KeyInFile, registry};

pub(super) fn run(context: &mut Context, args: &ExplainArgs) -> Result<(), CliError> {
    let only = args.kind.map(ConfigKind::from);
    let Some(typed) = &args.wanted else {
        if context.output.format() == Format::Markdown && only.is_none() {
            return context.output.raw(keys::markdown().trim_end());
        }
        let all = registry::all();
        let wanted = all
            .into_iter()
            .filter(|(kind, _)| only.is_none_or(|only| only == *kind));
        return table(context, &wanted.collect::<Vec<_>>());
    };
    let found = registry::find(typed, only);
    match found.as_slice() {
        [] => Err(unknown(typed, only)),
        [(kind, key)] => one(context, *kind, key),
        several => table(context, several),
    }
}

fn unknown(typed: &str, only: Option<ConfigKind>) -> CliError {
    let near = registry::near(typed, only);
    let place = if near.is_empty() {
        String::new()
    } else {
        format!("; did you mean {}?", near.join(" or "))
    };
    CliError::NotFound {
        what: "configuration key",
        name: typed.to_owned(),
        place,
        next: "`ebbtide-manage config explain` lists all of them",
    }
}

fn json(kind: ConfigKind, key: &Key) -> Json {
    let maybe = |text: &str| {
        if text.is_empty() {
            Json::Null
        } else {
            Json::from(text)
        }
    };
    let words = match &key.ty {
        keys::Type::Words(words) => {
            Json::List(words.iter().map(|word| Json::from(*word)).collect())
        }
        _ => Json::Null,
    };
    let (least, most) = key.range.map_or((Json::Null, Json::Null), |(least, most)| {
        (Json::from(least), Json::from(most))
    });
    Json::object([("key", Json::from(key.shown(kind)))])
        .with("kind", kind.as_str())
        .with("section", key.section())
        .with(
            "type",
            if words == Json::Null {
                key.ty.to_string()
            } else {
                "word".to_owned()
            },
        )
        .with("words", words)
        .with("unit", maybe(key.unit))
        .with("default", maybe(&key.default))
        .with("required", key.required)
        .with("minimum", least)
        .with("maximum", most)
        .with("applies", key.applies.as_str())
        .with(
            "environment",
            key.variable(kind).map_or(Json::Null, Json::from),
        )
        .with("secret", key.secret)
        .with("example", key.example.as_str())
        .with("what", key.what.as_str())
}

fn one(context: &mut Context, kind: ConfigKind, key: &Key) -> Result<(), CliError> {
    let pairs = keys::key_as_text(kind, key);
    context.output.details(Details {
        fields: pairs
            .into_iter()
            .map(|(name, answer)| (name, TableCell::new(answer)))
            .collect(),
        json: json(kind, key),
    })
}

fn table(context: &mut Context, found: &[(ConfigKind, &'static Key)]) -> Result<(), CliError> {
    let row = |(kind, key): &(ConfigKind, &'static Key)| {
        let unit = if key.unit.is_empty() {
            String::new()
        } else {
            format!(", {}", key.unit)
        };
        let range = if key.range.is_some() {
            format!(", {}", key.range_shown())
        } else {
            String::new()
        };
        vec![
            TableCell::new(kind),
            TableCell::new(key.shown(*kind)),
            TableCell::new(format!("{}{range}{unit}", key.ty)),
            TableCell::new(if key.required {
                "required"
            } else {
                key.default.as_str()
            }),
            TableCell::new(key.applies.as_str()),
            TableCell::new(first_sentence(&key.what)).value(key.what.as_str()),
        ]
    };
    context.output.listing(Listing {
        columns: vec![
            text("kind", "File").detail(3),
            text("key", "Key"),
            text("type", "Takes"),
            text("default", "Default").detail(1),
            text("applies", "Applies").detail(2),
            text("what", "What it does"),
        ],
        rows: found.iter().map(row).collect(),
        json: Json::List(found.iter().map(|(kind, key)| json(*kind, key)).collect()),
        none: "there is no such key",
    })
}

/// A table has room for one; `explain KEY` says the rest.
fn first_sentence(text: &str) -> &str {
    text.find(". ").map_or(text, |end| &text[..=end])
}
