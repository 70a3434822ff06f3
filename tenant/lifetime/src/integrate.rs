//! Integrals of smooth functions over a finite interval.

/// Nodes and weights of the Gauss–Legendre rule with eight points, the positive half.
const RULE: [(f64, f64); 4] = [
    (0.183_434_642_495_649_8, 0.362_683_783_378_362),
    (0.525_532_409_916_329, 0.313_706_645_877_887_3),
    (0.796_666_477_413_626_7, 0.222_381_034_453_374_48),
    (0.960_289_856_497_536_3, 0.101_228_536_290_376_26),
];

fn panel(f: &impl Fn(f64) -> f64, from: f64, to: f64) -> f64 {
    let (middle, half) = (0.5 * (from + to), 0.5 * (to - from));
    let sum: f64 = RULE
        .iter()
        .map(|(x, w)| w * (f(middle - half * x) + f(middle + half * x)))
        .sum();
    sum * half
}

fn refine(f: &impl Fn(f64) -> f64, from: f64, to: f64, whole: f64, depth: u32) -> f64 {
    let middle = 0.5 * (from + to);
    let (left, right) = (panel(f, from, middle), panel(f, middle, to));
    let halves = left + right;
    if depth == 0 || (halves - whole).abs() <= 1e-13 * (1.0 + halves.abs()) {
        return halves;
    }
    refine(f, from, middle, left, depth - 1) + refine(f, middle, to, right, depth - 1)
}

/// The integral of `f` over `from..to`, by halving until eight-point Gauss–Legendre agrees with
/// itself to 1e-13.
pub(crate) fn integral(f: impl Fn(f64) -> f64, from: f64, to: f64) -> f64 {
    if to <= from {
        return 0.0;
    }
    refine(&f, from, to, panel(&f, from, to), 24)
}
