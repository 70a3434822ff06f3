//! What is done at one node of the search: propagation, exact bound, thinning, rounding.

use crate::relax::ClassBounds;
use crate::search::{MAX_BUDGET_ROWS, Search, SearchGoal, WHOLE};

/// Prices are cut here: 2^104 times 2^14 members times some rows stays within 127 bits, and no
/// useful price is larger than the weight of everything, 2^96.
const MAX_PRICE: f64 = 20_282_409_603_651_670_423_947_251_286_016.0;

impl Search {
    /// Draws the conclusions that need no prices. False if the node has no set.
    pub(crate) fn propagate(&mut self) -> bool {
        if self.overfull || (!self.model.limits.is_empty() && !self.propagate_budgets()) {
            return false;
        }
        let rows = self.model.rows;
        // How much of each row the members beyond those that are needed could leave out together.
        self.sums.clear();
        self.sums
            .extend(self.missing.iter().map(|&missing| -i128::from(missing)));
        for &class in &self.open {
            let c = class as usize;
            let count = i128::from(self.high[c]);
            if count > 0 {
                let amounts = &self.amounts[c * rows..(c + 1) * rows];
                for (sum, &amount) in self.sums.iter_mut().zip(amounts) {
                    *sum += count * i128::from(amount);
                }
            }
        }
        if self.sums.iter().any(|&sum| sum < 0) {
            return false;
        }
        let mut forced = false;
        for position in 0..self.open.len() {
            let class = self.open[position];
            let c = class as usize;
            let (low, high) = (self.low[c], self.high[c]);
            if low == high {
                continue;
            }
            let mut needed = low;
            for (&spare, &amount) in self
                .sums
                .iter()
                .zip(&self.amounts[c * rows..(c + 1) * rows])
            {
                let amount = i128::from(amount);
                if amount * i128::from(high - needed) > spare {
                    // Below `high`, as the product above exceeds `spare`.
                    needed = high - (spare / amount) as u32;
                }
            }
            if needed > low {
                self.narrow(class, needed, high);
                forced = true;
            }
        }
        // What is forced in takes places, too; from here on `low` keeps the budgets.
        !forced || self.model.limits.is_empty() || self.propagate_budgets()
    }

    /// Closes the classes whose budgets are full.
    fn propagate_budgets(&mut self) -> bool {
        self.used.clear();
        self.used.resize(self.room.len(), 0);
        for &class in &self.open {
            for &budget in self.model.budgets_of(class as usize) {
                self.used[budget as usize] += self.low[class as usize];
            }
        }
        if self
            .used
            .iter()
            .zip(&self.room)
            .any(|(used, room)| used > room)
        {
            return false;
        }
        for position in 0..self.open.len() {
            let class = self.open[position];
            let c = class as usize;
            let places = self.model.budgets_of(c).iter().map(|&budget| {
                let budget = budget as usize;
                self.room[budget] - self.used[budget]
            });
            let most = places.min().unwrap_or(u32::MAX).saturating_add(self.low[c]);
            if most < self.high[c] {
                self.narrow(class, self.low[c], most);
            }
        }
        true
    }

    /// Whether the victims that every set of the node contains suffice; they are then in `trial`.
    pub(crate) fn covered_by_low(&mut self) -> bool {
        self.trial.clone_from(&self.low);
        self.trial_covers()
    }

    /// Whether `trial` covers what is missing; leaves in `sums` how much it has to spare.
    fn trial_covers(&mut self) -> bool {
        let rows = self.model.rows;
        self.sums.clear();
        self.sums
            .extend(self.missing.iter().map(|&missing| -i128::from(missing)));
        for &class in &self.open {
            let c = class as usize;
            let count = i128::from(self.trial[c]);
            if count > 0 {
                let amounts = &self.amounts[c * rows..(c + 1) * rows];
                for (sum, &amount) in self.sums.iter_mut().zip(amounts) {
                    *sum += count * i128::from(amount);
                }
            }
        }
        self.sums.iter().all(|&sum| sum >= 0)
    }

    /// The bound that the relaxation's prices prove, in scaled weight; see the module comment of
    /// `search`.
    pub(crate) fn exact_bound(&mut self) -> i128 {
        let rows = self.model.rows;
        self.price.clear();
        let mut bound = self.fixed_scaled;
        for (row, &price) in self.relaxation.price.iter().enumerate() {
            if row < rows {
                let missing = i128::from(self.missing[row]);
                // The relaxation's rows are scaled to 1; rounding down keeps `price * missing` in
                // range.
                let whole = price.clamp(0.0, MAX_PRICE) as i128;
                let price = if missing > 0 { whole / missing } else { 0 };
                bound += price * missing;
                self.price.push(price);
            } else {
                let budget = self.relaxation.budget_rows[row - rows] as usize;
                let price = (-price).clamp(0.0, MAX_PRICE) as i128;
                bound -= price * i128::from(self.room[budget]);
                self.price.push(price);
            }
        }
        self.value.clear();
        for position in 0..self.open.len() {
            let class = self.open[position] as usize;
            let mut value = 0;
            let amounts = &self.amounts[class * rows..(class + 1) * rows];
            for (&price, &amount) in self.price.iter().zip(amounts) {
                value += price * i128::from(amount);
            }
            if rows < self.price.len() {
                let member_of = self.model.budgets_of(class);
                for (budget, price) in self.relaxation.budget_rows.iter().zip(&self.price[rows..]) {
                    if member_of.contains(budget) {
                        value -= price;
                    }
                }
            }
            self.value.push(value);
            let count = self.favourite(class, value);
            bound += self.reduced(class, count, value);
        }
        bound
    }

    /// The count of a class that is best at its value.
    pub(crate) fn favourite(&self, class: usize, value: i128) -> u32 {
        let (mut count, high) = (self.low[class], self.high[class]);
        while count < high && self.model.scaled_member(class, count) < value {
            count += 1;
        }
        count
    }

    pub(crate) fn reduced(&self, class: usize, count: u32, value: i128) -> i128 {
        self.model.scaled_weight(class, count) - i128::from(count) * value
    }

    /// Takes away the counts whose reduced cost alone lifts the bound above the ceiling. Reduced
    /// costs grow to both sides of the favourite.
    pub(crate) fn thin(&mut self, bound: i128) {
        let ceiling = self.ceiling();
        for position in 0..self.open.len() {
            let class = self.open[position];
            let c = class as usize;
            let (old_low, old_high) = (self.low[c], self.high[c]);
            if old_low == old_high {
                continue;
            }
            let value = self.value[position];
            let favourite = self.favourite(c, value);
            let least = self.reduced(c, favourite, value);
            let (mut low, mut high) = (old_low, old_high);
            while low < favourite {
                let lifted = bound + self.reduced(c, low, value) - least;
                if lifted <= ceiling {
                    break;
                }
                self.least_cut = self.least_cut.min(lifted);
                low += 1;
            }
            while high > favourite {
                let lifted = bound + self.reduced(c, high, value) - least;
                if lifted <= ceiling {
                    break;
                }
                self.least_cut = self.least_cut.min(lifted);
                high -= 1;
            }
            if (low, high) != (old_low, old_high) {
                self.narrow(class, low, high);
            }
        }
    }

    /// Rounds the relaxation's solution up to a sufficient set without idle members, in `trial`.
    /// False if that is too little or breaks a budget.
    pub(crate) fn round(&mut self) -> bool {
        self.trial.clone_from(&self.low);
        let bounds = ClassBounds {
            low: &self.low,
            high: &self.high,
        };
        for (position, &class) in self.open.iter().enumerate() {
            let c = class as usize;
            let fraction = self.relaxation.fraction(position, bounds);
            let count = fraction.member + u32::from(fraction.taken > WHOLE);
            self.trial[c] = count.clamp(self.low[c], self.high[c]);
        }
        // The relaxation stopped early, or rounding: add whole classes. Even all together may be
        // too little where a budget has just closed some.
        let mut covers = self.trial_covers();
        for position in 0..self.open.len() {
            if covers {
                break;
            }
            let c = self.open[position] as usize;
            if self.trial[c] < self.high[c] {
                self.trial[c] = self.high[c];
                covers = self.trial_covers();
            }
        }
        if !covers {
            return false;
        }
        self.drop_idle();
        self.trial_within_budgets()
    }

    /// Leaves out, heaviest first, each member of `trial` without which it still covers.
    fn drop_idle(&mut self) {
        let rows = self.model.rows;
        self.removable.clear();
        for &class in &self.open {
            let c = class as usize;
            for member in self.low[c]..self.trial[c] {
                self.removable
                    .push((self.model.scaled_member(c, member), class));
            }
        }
        // Members that stay once stay for good, since there is ever less to spare: one pass does.
        self.removable
            .sort_unstable_by(|left, right| right.cmp(left));
        for index in 0..self.removable.len() {
            let c = self.removable[index].1 as usize;
            let amounts = &self.amounts[c * rows..(c + 1) * rows];
            if self
                .sums
                .iter()
                .zip(amounts)
                .all(|(&sum, &amount)| sum >= i128::from(amount))
            {
                for (sum, &amount) in self.sums.iter_mut().zip(amounts) {
                    *sum -= i128::from(amount);
                }
                self.trial[c] -= 1;
            }
        }
    }

    pub(crate) fn trial_within_budgets(&mut self) -> bool {
        if self.model.limits.is_empty() {
            return true;
        }
        self.used.clear();
        self.used.resize(self.room.len(), 0);
        for &class in &self.open {
            for &budget in self.model.budgets_of(class as usize) {
                self.used[budget as usize] += self.trial[class as usize];
            }
        }
        self.used
            .iter()
            .zip(&self.room)
            .all(|(used, room)| used <= room)
    }

    /// `trial` is a sufficient set. Keeps it if it is better; true ends the search.
    pub(crate) fn offer(&mut self) -> bool {
        let open = self.open.iter().map(|&class| {
            let c = class as usize;
            self.model.weight(c, self.trial[c])
        });
        let weight = self.fixed_weight + open.sum::<u128>();
        match self.goal {
            Some(SearchGoal::AnyAsGood) => {
                if weight <= self.best_weight {
                    self.best.clone_from(&self.trial);
                    self.hit = true;
                }
                self.hit
            }
            _ => {
                if weight < self.best_weight {
                    self.best.clone_from(&self.trial);
                    self.best_weight = weight;
                    self.found = true;
                } else if weight == self.best_weight && self.found && self.best != self.trial {
                    self.least_cut = self.least_cut.min(self.model.scale(weight));
                }
                false
            }
        }
    }

    /// Gives rows to the budgets that the relaxation's solution exceeds. False if there are none
    /// (or too many).
    pub(crate) fn add_budget_rows(&mut self) -> bool {
        if self.model.limits.is_empty() {
            return false;
        }
        let bounds = ClassBounds {
            low: &self.low,
            high: &self.high,
        };
        let before = self.relaxation.budget_rows.len();
        for budget in 0..self.room.len() as u32 {
            if self.relaxation.budget_rows.len() == MAX_BUDGET_ROWS {
                break;
            }
            if self.relaxation.budget_rows.contains(&budget) {
                continue;
            }
            let mut used = 0.0;
            for (position, &class) in self.open.iter().enumerate() {
                if self.model.budgets_of(class as usize).contains(&budget) {
                    let fraction = self.relaxation.fraction(position, bounds);
                    used += f64::from(fraction.member) + fraction.taken;
                }
            }
            if used > f64::from(self.room[budget as usize]) + 1e-6 {
                self.relaxation.budget_rows.push(budget);
            }
        }
        self.relaxation.budget_rows.len() > before
    }

    /// Leaves idle members out of the best set. Only a search that ran out of nodes can have any: a
    /// branch may have forced them in.
    pub(crate) fn polish(&mut self) {
        if self.found {
            self.goal = Some(SearchGoal::Lightest);
            self.low.fill(0);
            self.high.clone_from(&self.model.len);
            self.activate();
            self.trial.clone_from(&self.best);
            if self.trial_covers() {
                self.drop_idle();
                self.offer();
            }
        }
    }
}
