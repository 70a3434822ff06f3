use super::{Applies, Type, check_ranges, keys, range_in_words};
use crate::Seconds;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Colour {
    DarkRed,
    Blue,
}

crate::words!(Colour);

crate::settings! {
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    struct Whole: Default {
        /// How long it
        /// takes.
        ///
        /// Not for operators.
        grace_seconds: Seconds = Seconds(30) => key("60").range(0..=900);
        /// Its colour.
        colour: Colour = Colour::Blue => key("dark-red").sighup();
        /// The parts.
        parts: Vec<Part> = Vec::new() => section().sighup();
        /// One part more.
        spare: Option<Part> = None;
        /// By name.
        named: BTreeMap<String, Part> = BTreeMap::new() => key("{ a = { name = \"b\" } }");
        /// Set by the program.
        #[serde(skip)]
        hidden: u32 = 7 => internal().range(0..=10);
    }
}

crate::settings! {
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    struct Part {
        /// Its name.
        name: String => key("a");
        /// How much it weighs.
        #[serde(default)]
        weight: Option<f64> = None => key("2.0").range(0.5..).unit("kg");
    }
}

#[test]
fn keys_come_in_the_order_of_the_fields_with_what_is_declared() {
    let keys = keys::<Whole>();
    let paths: Vec<&str> = keys.iter().map(|key| key.path.as_str()).collect();
    assert_eq!(
        paths,
        [
            "grace_seconds",
            "colour",
            "parts[].name",
            "parts[].weight",
            "spare.name",
            "spare.weight",
            "named",
            "named.*.name",
            "named.*.weight",
        ]
    );
    let grace = &keys[0];
    assert_eq!(grace.what, "How long it takes.");
    assert_eq!((grace.unit, grace.default.as_str()), ("seconds", "30"));
    assert_eq!((&grace.ty, grace.range), (&Type::Whole, Some((0.0, 900.0))));
    assert_eq!(grace.applies, Applies::Start);
    assert_eq!(keys[1].ty, Type::Words(vec!["dark-red", "blue"]));
    assert_eq!(keys[1].default, "\"blue\"");
    assert!(keys[2].required && !keys[3].required);
    assert_eq!(
        (keys[2].applies, keys[4].applies),
        (Applies::Sighup, Applies::Start)
    );
    assert_eq!((keys[3].unit, keys[3].default.as_str()), ("kg", ""));
}

#[test]
fn a_number_out_of_range_is_named_with_its_place_and_what_is_allowed() {
    assert_eq!(check_ranges(&Whole::default()), Ok(()));
    let of = |spoil: fn(&mut Whole)| {
        let mut whole = Whole::default();
        spoil(&mut whole);
        check_ranges(&whole).unwrap_err().to_string()
    };
    assert_eq!(
        of(|w| w.grace_seconds = Seconds(901)),
        "grace_seconds = 901: use 0 to 900"
    );
    assert_eq!(of(|w| w.hidden = 11), "hidden = 11: use 0 to 10");
    let light = || Part {
        name: "a".to_owned(),
        weight: Some(f64::NAN),
    };
    let parts = check_ranges(&Whole {
        parts: vec![light()],
        ..Whole::default()
    });
    let words = parts.unwrap_err().to_string();
    assert_eq!(words, "parts[0].weight = NaN: use 0.5 or more");
    let named = check_ranges(&Whole {
        named: BTreeMap::from([("x".to_owned(), light())]),
        ..Whole::default()
    });
    assert_eq!(named.unwrap_err().key, "named.x.weight");
}

#[test]
fn unknown_keys_are_errors() {
    assert!(serde_json::from_str::<Whole>("{\"color\": 1}").is_err());
    assert!(serde_json::from_str::<Part>("{\"name\": \"a\", \"size\": 1}").is_err());
}

#[test]
fn ranges_read_as_words() {
    assert_eq!(range_in_words(0.1, 600.0), "0.1 to 600");
    assert_eq!(range_in_words(1.0, f64::INFINITY), "1 or more");
}
