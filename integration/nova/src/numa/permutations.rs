//! Ordered choices of positions, in lexicographic order.

/// All ways to choose `chosen` of `0..all` in order, the first positions changing last. They are
/// made one at a time: there may be very many.
pub(super) struct Permutations {
    positions: Vec<usize>,
    cycles: Vec<usize>,
    chosen: usize,
    state: State,
}

enum State {
    Fresh,
    Running,
    Done,
}

impl Permutations {
    pub(super) fn new(all: usize, chosen: usize) -> Self {
        Self {
            positions: (0..all).collect(),
            cycles: (0..chosen.min(all)).map(|place| all - place).collect(),
            chosen,
            state: if chosen > all {
                State::Done
            } else {
                State::Fresh
            },
        }
    }

    /// The next choice, or `None` at the end.
    pub(super) fn next_choice(&mut self) -> Option<&[usize]> {
        match self.state {
            State::Done => None,
            State::Fresh => {
                self.state = State::Running;
                Some(&self.positions[..self.chosen])
            }
            State::Running => {
                for place in (0..self.chosen).rev() {
                    self.cycles[place] -= 1;
                    if self.cycles[place] > 0 {
                        let other = self.positions.len() - self.cycles[place];
                        self.positions.swap(place, other);
                        return Some(&self.positions[..self.chosen]);
                    }
                    self.positions[place..].rotate_left(1);
                    self.cycles[place] = self.positions.len() - place;
                }
                self.state = State::Done;
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Permutations;

    #[test]
    fn choices_come_in_lexicographic_order() {
        let mut found = Vec::new();
        let mut permutations = Permutations::new(3, 2);
        while let Some(choice) = permutations.next_choice() {
            found.push(choice.to_vec());
        }
        assert_eq!(found, [[0, 1], [0, 2], [1, 0], [1, 2], [2, 0], [2, 1]]);
    }

    #[test]
    fn more_than_there_is_cannot_be_chosen() {
        assert!(Permutations::new(1, 2).next_choice().is_none());
    }
}
