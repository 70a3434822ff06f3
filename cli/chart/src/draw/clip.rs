//! Lines cut to the part of the plane that a panel shows.

use crate::axis::FixedAxis;

/// A piece of a line, in values of the axes.
pub(super) type Piece = Vec<(f64, f64)>;

/// The pieces of the line through `points` that lie within both axes. Points that are no numbers
/// interrupt it.
pub(super) fn pieces(points: &[(f64, f64)], x: &FixedAxis, y: &FixedAxis) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut piece: Piece = Vec::new();
    let placed: Vec<(f64, f64)> = points
        .iter()
        .map(|(a, b)| (x.place(*a), y.place(*b)))
        .collect();
    for pair in placed.windows(2) {
        let [from, to] = pair else { continue };
        match cut(*from, *to) {
            Some((start, end)) => {
                // The piece goes on only if nothing was cut off where the last segment ended.
                if piece.last() != Some(&start) {
                    finish(&mut pieces, &mut piece);
                    piece.push(start);
                }
                piece.push(end);
            }
            None => finish(&mut pieces, &mut piece),
        }
    }
    finish(&mut pieces, &mut piece);
    for point in pieces.iter_mut().flatten() {
        *point = (x.value(point.0), y.value(point.1));
    }
    pieces
}

fn finish(pieces: &mut Vec<Piece>, piece: &mut Piece) {
    if !piece.is_empty() {
        pieces.push(std::mem::take(piece));
    }
}

/// The part of a segment within the unit square (Liang and Barsky, 1984).
fn cut(from: (f64, f64), to: (f64, f64)) -> Option<((f64, f64), (f64, f64))> {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    if !(from.0.is_finite() && from.1.is_finite() && dx.is_finite() && dy.is_finite()) {
        return None;
    }
    let (mut begin, mut end) = (0.0_f64, 1.0_f64);
    for (step, room) in [
        (-dx, from.0),
        (dx, 1.0 - from.0),
        (-dy, from.1),
        (dy, 1.0 - from.1),
    ] {
        if step == 0.0 {
            if room < 0.0 {
                return None;
            }
        } else if step < 0.0 {
            begin = begin.max(room / step);
        } else {
            end = end.min(room / step);
        }
    }
    if begin > end {
        return None;
    }
    let at = |t: f64| {
        // Exact ends, so that the next segment begins at the very same point.
        if t == 0.0 {
            from
        } else if t == 1.0 {
            to
        } else {
            (from.0 + t * dx, from.1 + t * dy)
        }
    };
    Some((at(begin), at(end)))
}

/// True if the panel shows this point.
pub(super) fn is_visible(point: (f64, f64), x: &FixedAxis, y: &FixedAxis) -> bool {
    // A hair of tolerance: the last point of a line often is the end of the axis.
    let inside = |place: f64| (-1e-9..=1.0 + 1e-9).contains(&place);
    inside(x.place(point.0)) && inside(y.place(point.1))
}

/// The value, or the nearest that the axis shows.
pub(super) fn within(value: f64, axis: &FixedAxis) -> f64 {
    value.clamp(axis.low, axis.high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Axis;

    fn unit() -> FixedAxis {
        Axis::new("x").range(0.0, 1.0).settle(None).unwrap()
    }

    #[test]
    fn a_line_that_leaves_and_comes_back_is_two_pieces() {
        let line = [(0.0, 0.5), (0.25, 1.5), (0.75, 1.5), (1.0, 0.5)];
        let pieces = pieces(&line, &unit(), &unit());
        assert_eq!(
            pieces,
            [
                vec![(0.0, 0.5), (0.125, 1.0)],
                vec![(0.875, 1.0), (1.0, 0.5)]
            ]
        );
    }

    #[test]
    fn what_is_no_number_interrupts() {
        let line = [
            (0.0, 0.1),
            (0.1, 0.1),
            (0.2, f64::NAN),
            (0.3, 0.1),
            (0.4, 0.1),
        ];
        assert_eq!(pieces(&line, &unit(), &unit()).len(), 2);
    }

    #[test]
    fn a_line_that_stays_inside_is_one_piece_with_all_its_points() {
        let line: Vec<(f64, f64)> = (0..=10).map(|i| (f64::from(i) / 10.0, 0.3)).collect();
        assert_eq!(pieces(&line, &unit(), &unit()), [line]);
    }
}
