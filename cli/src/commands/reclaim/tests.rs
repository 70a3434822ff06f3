use super::*;

#[test]
fn a_deadline_is_a_span_or_a_time() {
    for (text, seconds) in [
        ("300", 300),
        ("90s", 90),
        ("5m", 300),
        ("2h", 7200),
        ("1d", 86_400),
    ] {
        assert_eq!(deadline(text), Ok(Deadline::After(seconds)), "{text}");
    }
    let at = "2026-12-01T06:00:00Z";
    assert_eq!(deadline(at), Ok(Deadline::At(at.to_owned())));
    for wrong in ["", "0", "0m", "5 m", "m", "-5m", "5w", "99999999d", "soon"] {
        assert!(deadline(wrong).is_err(), "{wrong}");
    }
}
