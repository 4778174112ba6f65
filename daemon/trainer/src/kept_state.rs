//! The state of a trainer as bytes: its own, for the time after a restart, and that of another member's, to begin with.

/// The states that a peer holds for its trainer.
#[derive(Debug, Default)]
pub(crate) struct KeptState {
    /// The trainer's own, as records keep it.
    own: Vec<u8>,
    /// The one sent for the order of this number; it becomes its own with the answer to that order.
    put: Option<(u64, Vec<u8>)>,
    /// The one that another member gave; empty where there is none, and once the trainer has sent its own.
    given: Vec<u8>,
    /// Set while the attached trainer shares its state with members that join, and takes theirs.
    pub(crate) is_shared: bool,
}

impl KeptState {
    /// The own state with these bytes, which a record had.
    pub(crate) fn restore(&mut self, own: &[u8]) {
        self.own = own.to_vec();
    }

    /// Holds a state of the trainer until the order of this number is answered.
    pub(crate) fn put(&mut self, number: u64, state: Vec<u8>) {
        self.put = Some((number, state));
    }

    /// Keeps the state that was sent for the order of this number, which is answered.
    pub(crate) fn settle(&mut self, answered: Option<u64>) {
        if let Some((_, state)) = self.put.take().filter(|(number, _)| Some(*number) == answered) {
            self.own = state;
            self.given = Vec::new();
        }
    }

    /// The trainer's own state.
    pub(crate) fn own(&self) -> &[u8] {
        &self.own
    }

    /// Holds the state that another member gave.
    pub(crate) fn give(&mut self, state: Vec<u8>) {
        self.given = state;
    }

    /// The state that another member gave.
    pub(crate) fn given(&self) -> &[u8] {
        &self.given
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_counts_once_its_order_is_answered_and_then_that_of_another_member_is_dropped() {
        let mut kept = KeptState { given: vec![9], ..KeptState::default() };
        kept.put(1, vec![7]);
        assert_eq!((kept.own(), kept.given()), (&[][..], &[9][..]), "order 1 is not answered yet");
        kept.settle(Some(2));
        assert_eq!((kept.own(), kept.given()), (&[][..], &[9][..]), "it was sent for another order");
        kept.put(2, vec![8]);
        kept.settle(Some(2));
        assert_eq!((kept.own(), kept.given()), (&[8][..], &[][..]));
        kept.settle(Some(3));
        assert_eq!(kept.own(), [8], "an answer without a state leaves the last one");
    }
}
