//! The least value of a function of a few parameters: Nelder and Mead's simplex on the logarithms,
//! begun again until nothing moves.
//!
//! Written here and not taken from a crate: argmin brings the unmaintained `paste`, which
//! `deny.toml` keeps out, and cobyla is translated C with unsafe blocks. One to four parameters
//! need no more than this.

/// Least and greatest value of a parameter, both above zero.
pub(super) type Bound = (f64, f64);

const EVALUATIONS: usize = 4_000;
const ROUNDS: usize = 12;

/// The parameters with the least value of `cost`, and that value.
pub(super) fn least(
    cost: &impl Fn(&[f64]) -> f64,
    bounds: &[Bound],
    starts: &[Vec<f64>],
) -> Option<(Vec<f64>, f64)> {
    valleys(cost, bounds, starts)
        .into_iter()
        .min_by(|a, b| a.1.total_cmp(&b.1))
}

/// Where the search ends from each start, and the value there. Points outside of the bounds are
/// moved onto them.
pub(super) fn valleys(
    cost: &impl Fn(&[f64]) -> f64,
    bounds: &[Bound],
    starts: &[Vec<f64>],
) -> Vec<(Vec<f64>, f64)> {
    let inside = |logs: &[f64]| -> Vec<f64> {
        logs.iter()
            .zip(bounds)
            .map(|(x, bound)| x.exp().clamp(bound.0, bound.1))
            .collect()
    };
    let value = |logs: &[f64]| {
        let value = cost(&inside(logs));
        if value.is_nan() { f64::INFINITY } else { value }
    };
    let mut found = Vec::with_capacity(starts.len());
    for start in starts {
        let mut at: Vec<f64> = start
            .iter()
            .zip(bounds)
            .map(|(x, bound)| x.clamp(bound.0, bound.1).ln())
            .collect();
        let mut reached = value(&at);
        let mut width = 0.3;
        for _ in 0..ROUNDS {
            let (next, now) = simplex(&value, &at, width);
            let gained = reached - now;
            // What lies beyond a bound is the bound.
            at = inside(&next).iter().map(|x| x.ln()).collect();
            reached = now;
            width = 0.05;
            if gained <= 1e-12 * (1.0 + now.abs()) {
                break;
            }
        }
        if reached.is_finite() {
            found.push((inside(&at), reached));
        }
    }
    found
}

/// One run from `start`: Nelder, Mead, *A simplex method for function minimization* (1965), with
/// the usual factors.
fn simplex(value: &impl Fn(&[f64]) -> f64, start: &[f64], width: f64) -> (Vec<f64>, f64) {
    let n = start.len();
    let mut corners: Vec<(Vec<f64>, f64)> = vec![(start.to_vec(), value(start))];
    for axis in 0..n {
        let mut corner = start.to_vec();
        corner[axis] += width;
        let reached = value(&corner);
        corners.push((corner, reached));
    }
    for _ in 0..EVALUATIONS {
        corners.sort_by(|a, b| a.1.total_cmp(&b.1));
        let spread = (0..n)
            .map(|axis| (corners[n].0[axis] - corners[0].0[axis]).abs())
            .fold(0.0, f64::max);
        if spread < 1e-9 {
            break;
        }
        let centre: Vec<f64> = (0..n)
            .map(|axis| corners[..n].iter().map(|c| c.0[axis]).sum::<f64>() / n as f64)
            .collect();
        let along = |factor: f64| {
            let point: Vec<f64> = (0..n)
                .map(|axis| centre[axis] + factor * (corners[n].0[axis] - centre[axis]))
                .collect();
            let reached = value(&point);
            (point, reached)
        };
        let reflected = along(-1.0);
        let taken = if reflected.1 < corners[0].1 {
            let expanded = along(-2.0);
            if expanded.1 < reflected.1 {
                expanded
            } else {
                reflected
            }
        } else if reflected.1 < corners[n - 1].1 {
            reflected
        } else {
            let contracted = along(if reflected.1 < corners[n].1 {
                -0.5
            } else {
                0.5
            });
            if contracted.1 >= reflected.1.min(corners[n].1) {
                let best = corners[0].0.clone();
                for corner in &mut corners[1..] {
                    for (x, b) in corner.0.iter_mut().zip(&best) {
                        *x = b + 0.5 * (*x - b);
                    }
                    corner.1 = value(&corner.0);
                }
                continue;
            }
            contracted
        };
        corners[n] = taken;
    }
    corners.sort_by(|a, b| a.1.total_cmp(&b.1));
    corners.swap_remove(0)
}

/// The second derivatives of `cost` at `at`, by central differences.
pub(super) fn curvature(cost: &impl Fn(&[f64]) -> f64, at: &[f64]) -> Vec<Vec<f64>> {
    let n = at.len();
    let step: Vec<f64> = at.iter().map(|x| x.abs() * 1e-4).collect();
    let shifted = |i: usize, by: f64, j: usize, also: f64| {
        let mut point = at.to_vec();
        point[i] += by * step[i];
        point[j] += also * step[j];
        cost(&point)
    };
    (0..n)
        .map(|i| {
            (0..n)
                .map(|j| {
                    let sum = shifted(i, 1.0, j, 1.0)
                        - shifted(i, 1.0, j, -1.0)
                        - shifted(i, -1.0, j, 1.0)
                        + shifted(i, -1.0, j, -1.0);
                    sum / (4.0 * step[i] * step[j])
                })
                .collect()
        })
        .collect()
}

/// The diagonal of the inverse of a symmetric matrix; `None` if it has none or an entry is not
/// above zero.
pub(super) fn inverse_diagonal(matrix: &[Vec<f64>]) -> Option<Vec<f64>> {
    let n = matrix.len();
    // Parameters differ in size by orders of magnitude: scaled to a unit diagonal, the pivots can
    // be compared.
    let scale: Vec<f64> = (0..n).map(|i| matrix[i][i].abs().sqrt()).collect();
    if scale.iter().any(|s| !s.is_finite() || *s == 0.0) {
        return None;
    }
    (0..n)
        .map(|column| {
            let mut rows: Vec<Vec<f64>> = (0..n)
                .map(|i| {
                    let mut row: Vec<f64> = (0..n)
                        .map(|j| matrix[i][j] / (scale[i] * scale[j]))
                        .collect();
                    row.push(f64::from(u8::from(i == column)));
                    row
                })
                .collect();
            let solution = solve(&mut rows)?;
            let entry = solution[column] / (scale[column] * scale[column]);
            (entry.is_finite() && entry > 0.0).then_some(entry)
        })
        .collect()
}

/// Gauss's elimination with partial pivots; rows have the right side as last entry.
fn solve(rows: &mut [Vec<f64>]) -> Option<Vec<f64>> {
    let n = rows.len();
    for at in 0..n {
        let pivot = (at..n).max_by(|&a, &b| rows[a][at].abs().total_cmp(&rows[b][at].abs()))?;
        if rows[pivot][at].abs() < 1e-12 {
            return None;
        }
        rows.swap(at, pivot);
        let (done, below) = rows.split_at_mut(at + 1);
        for row in below {
            let factor = row[at] / done[at][at];
            for (x, p) in row.iter_mut().zip(&done[at]) {
                *x -= factor * p;
            }
        }
    }
    let mut solution = vec![0.0; n];
    for at in (0..n).rev() {
        let known: f64 = (at + 1..n).map(|j| rows[at][j] * solution[j]).sum();
        solution[at] = (rows[at][n] - known) / rows[at][at];
    }
    Some(solution)
}
