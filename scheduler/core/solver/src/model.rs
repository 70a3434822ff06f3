//! The same problem as `classes`, as numbers that a linear relaxation can work with.
//!
//! *Compressed weights.* The packed weights of `classes` have the cost 64 bits above the ages,
//! which is beyond the 53 bits of a double. Here cost, count and age are packed as tightly as this
//! host allows: costs and ages are divided by their common divisors, and if all costs are equal the
//! count says it all. Sums still compare as (cost, victims, total age). So relaxations see ages
//! where only ages differ.
//!
//! *Scaled weights* are the compressed ones shifted such that their sum is near 2^96: bounds are
//! exact integers in that scale. Shifting right rounds each weight down, which keeps lower bounds
//! valid.
//!
//! *Rows* are `amounts · counts ≥ deficit`: one a missing resource class, and possibly one more
//! that says how many victims it takes at least (see `search`).
//!
//! A **set cost** (one that is not a sum, such as fairness over tenants) has its place here:
//! bounded from below by a weight for each member it can be searched for exactly as now, and
//! re-evaluated where `search` accepts an incumbent.

use crate::classes::{Classes, unpack};

/// Bits of the sum of all scaled weights. 2^96 times 2^14 members times a few rows stays below
/// 2^127.
const SCALED_BITS: u32 = 96;

/// Columns of the relaxation; see the module comment. Classes are those of `Classes`, in its order.
#[derive(Debug, Default)]
pub(crate) struct Model {
    pub(crate) rows: usize,
    pub(crate) deficit: Vec<i64>,
    /// Row-major, `rows` a class.
    pub(crate) amounts: Vec<i64>,
    pub(crate) len: Vec<u32>,
    /// Where the class's members are in `weight` and `scaled`. Prefix sums have one entry more for
    /// each class: they begin at `start + class`.
    pub(crate) start: Vec<u32>,
    pub(crate) scaled: Vec<i128>,
    pub(crate) float: Vec<f64>,
    sum: Vec<u128>,
    scaled_sum: Vec<i128>,
    float_sum: Vec<f64>,
    pub(crate) limits: Vec<u32>,
    pub(crate) budget_start: Vec<u32>,
    pub(crate) budgets: Vec<u32>,
    /// Sum of all weights.
    pub(crate) total: u128,
    /// Bits to shift left for the scale (right if negative).
    shift: i32,
    /// A compressed weight divided by `per_cost` is the cost in multiples of `cost_unit`.
    per_cost: u128,
    cost_unit: u64,
}

/// What a member weighs in the relaxation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Objective {
    /// The total order but for the UUIDs.
    Rank,
    /// One each: to learn how many victims it takes.
    Count,
}

impl Model {
    pub(crate) fn classes(&self) -> usize {
        self.len.len()
    }

    pub(crate) fn amounts_of(&self, class: usize) -> &[i64] {
        &self.amounts[class * self.rows..(class + 1) * self.rows]
    }

    pub(crate) fn budgets_of(&self, class: usize) -> &[u32] {
        &self.budgets[self.budget_start[class] as usize..self.budget_start[class + 1] as usize]
    }

    /// Weight of the first `count` members.
    pub(crate) fn weight(&self, class: usize, count: u32) -> u128 {
        self.sum[self.start[class] as usize + class + count as usize]
    }

    /// The same in the scale of the bounds, rounded down.
    pub(crate) fn scaled_weight(&self, class: usize, count: u32) -> i128 {
        self.scaled_sum[self.start[class] as usize + class + count as usize]
    }

    /// Scaled weight of one member.
    pub(crate) fn scaled_member(&self, class: usize, member: u32) -> i128 {
        self.scaled[self.start[class] as usize + member as usize]
    }

    /// The same as a double.
    pub(crate) fn float_member(&self, class: usize, member: u32) -> f64 {
        self.float[self.start[class] as usize + member as usize]
    }

    /// Scaled weight of the first `count` members as a double.
    pub(crate) fn float_weight(&self, class: usize, count: u32) -> f64 {
        self.float_sum[self.start[class] as usize + class + count as usize]
    }

    /// Weight of a set that is a prefix of each class.
    pub(crate) fn set_weight(&self, counts: &[u32]) -> u128 {
        counts
            .iter()
            .enumerate()
            .map(|(class, &count)| self.weight(class, count))
            .sum()
    }

    /// No set of weight up to `weight` has a larger scaled sum than this.
    pub(crate) fn scale(&self, weight: u128) -> i128 {
        let scaled = match u32::try_from(self.shift) {
            Ok(left) => weight << left,
            Err(_) => weight >> self.shift.unsigned_abs(),
        };
        // Weights never exceed the total plus one, which scales to about 2^96.
        scaled as i128
    }

    /// The least weight of a set whose scaled sum is at least `scaled`.
    pub(crate) fn unscale(&self, scaled: i128) -> u128 {
        let scaled = scaled.max(0).unsigned_abs();
        match u32::try_from(self.shift) {
            Ok(left) => {
                let whole = scaled >> left;
                whole + u128::from(whole << left != scaled)
            }
            Err(_) => scaled << self.shift.unsigned_abs(),
        }
    }

    /// The cost, in micro-units, that a set of at least this weight has at least.
    pub(crate) fn cost_floor(&self, weight: u128) -> u64 {
        let multiples = weight / self.per_cost;
        u64::try_from(multiples)
            .unwrap_or(u64::MAX)
            .saturating_mul(self.cost_unit)
    }

    /// All sets that cost no more than `micros` weigh less than this.
    pub(crate) fn weight_above(&self, micros: u64) -> u128 {
        let all = self.total + 1;
        match micros.checked_div(self.cost_unit) {
            Some(multiples) => (u128::from(multiples) + 1)
                .saturating_mul(self.per_cost)
                .min(all),
            None => all,
        }
    }

    /// Takes over the classes. `victims`, if positive, adds the row that says how many it takes.
    pub(crate) fn build(&mut self, classes: &Classes, objective: Objective, victims: u32) {
        let count = classes.count();
        self.rows = classes.row_count() + usize::from(victims > 0);
        self.deficit.clear();
        self.deficit.extend_from_slice(&classes.deficit);
        self.amounts.clear();
        if victims > 0 {
            self.deficit.push(i64::from(victims));
        }
        for class in 0..count {
            self.amounts.extend_from_slice(classes.amounts_of(class));
            if victims > 0 {
                self.amounts.push(1);
            }
        }
        self.len.clone_from(&classes.len);
        self.limits.clone_from(&classes.limits);
        self.budget_start.clone_from(&classes.budget_start);
        self.budgets.clone_from(&classes.budgets);
        self.compress(classes, objective);
    }

    fn compress(&mut self, classes: &Classes, objective: Objective) {
        let packing = match objective {
            Objective::Rank => Packing::of(classes),
            Objective::Count => Packing::COUNT,
        };
        (self.per_cost, self.cost_unit) = (packing.per_cost, packing.cost_unit);
        self.start.clear();
        self.sum.clear();
        let mut total = 0u128;
        let mut start = 0;
        for class in 0..classes.count() {
            self.start.push(start);
            start += classes.len[class];
            let mut sum = 0;
            self.sum.push(0);
            for item in classes.members(class) {
                sum += packing.weight(item.weight);
                self.sum.push(sum);
            }
            total += sum;
        }
        self.total = total;
        self.shift = SCALED_BITS as i32 - (u128::BITS - total.leading_zeros()) as i32;
        self.scaled.clear();
        self.scaled_sum.clear();
        self.float.clear();
        self.float_sum.clear();
        for class in 0..classes.count() {
            let mut sum = 0;
            self.scaled_sum.push(0);
            self.float_sum.push(0.0);
            for member in 0..self.len[class] {
                let weight = self.weight(class, member + 1) - self.weight(class, member);
                let scaled = self.scale(weight);
                sum += scaled;
                self.scaled_sum.push(sum);
                self.float_sum.push(sum as f64);
                self.scaled.push(scaled);
                self.float.push(scaled as f64);
            }
        }
    }
}

/// How cost, count and age go into one number.
struct Packing {
    cost_unit: u64,
    age_unit: u64,
    per_cost: u128,
    per_victim: u128,
}

impl Packing {
    const COUNT: Packing = Packing {
        cost_unit: 0,
        age_unit: 0,
        per_cost: 1,
        per_victim: 1,
    };

    fn of(classes: &Classes) -> Packing {
        let (mut cost_unit, mut age_unit, mut ages, mut members) = (0, 0, 0u128, 0u128);
        let mut first_cost = None;
        let mut equal_costs = true;
        for class in 0..classes.count() {
            for item in classes.members(class) {
                let (cost, _, age) = unpack(item.weight);
                equal_costs &= *first_cost.get_or_insert(cost) == cost;
                cost_unit = gcd(cost_unit, cost);
                age_unit = gcd(age_unit, age);
                ages += u128::from(age);
                members += 1;
            }
        }
        // One victim outweighs all ages, one unit of cost outweighs all victims with all ages.
        let per_victim = 1 + ages / u128::from(age_unit.max(1));
        let per_cost = if equal_costs {
            per_victim
        } else {
            per_victim * (members + 1)
        };
        Packing {
            cost_unit,
            age_unit,
            per_cost,
            per_victim,
        }
    }

    fn weight(&self, packed: u128) -> u128 {
        let (cost, _, age) = unpack(packed);
        let age = age.checked_div(self.age_unit).unwrap_or(0);
        // With equal costs the count stands for the cost as well.
        let cost = if self.per_cost == self.per_victim {
            0
        } else {
            cost.checked_div(self.cost_unit).unwrap_or(0)
        };
        u128::from(cost) * self.per_cost + self.per_victim + u128::from(age)
    }
}

fn gcd(mut left: u64, mut right: u64) -> u64 {
    while right != 0 {
        (left, right) = (right, left % right);
    }
    left
}
