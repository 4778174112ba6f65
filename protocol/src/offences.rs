//! The offences of a neighbour: refused parcels that no sound node sends, until sound ones make them good.

/// Offences at which a neighbour is suspended, those of its earlier lives included.
const MOST_OFFENCES: u32 = 3;
/// Sound parcels in a row that make good for one offence, so that a few in a long run suspend no neighbour.
const SOUND_FOR_AN_OFFENCE: u32 = 1000;

/// The offences of a neighbour in the present plan.
#[derive(Clone, Debug, Default)]
pub(crate) struct Offences {
    count: u32,
    /// Sound parcels since the last offence, or since the last one that was made good.
    sound: u32,
}

impl Offences {
    /// Counts a parcel that was accepted, or refused as one that no sound node sends. Others do not count.
    pub(crate) fn note(&mut self, is_offence: bool, is_accepted: bool) {
        if is_offence {
            self.count = self.count.saturating_add(1);
            self.sound = 0;
            return;
        }
        self.sound = self.sound.saturating_add(u32::from(is_accepted));
        if self.sound >= SOUND_FOR_AN_OFFENCE {
            self.count = self.count.saturating_sub(1);
            self.sound = 0;
        }
    }

    /// Returns `true` if the neighbour is to be suspended.
    pub(crate) fn are_too_many(&self) -> bool {
        self.count >= MOST_OFFENCES
    }

    /// Begins a new life of the neighbour, which may be sounder than the last one: one more offence is enough.
    pub(crate) fn begin_life(&mut self) {
        self.count = self.count.min(MOST_OFFENCES - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offend(offences: &mut Offences) {
        offences.note(true, false);
    }

    /// Accepts so many parcels, with refused ones between them that are no offences.
    fn accept(offences: &mut Offences, parcels: u32) {
        for _ in 0..parcels {
            offences.note(false, false);
            offences.note(false, true);
        }
    }

    #[test]
    fn three_offences_in_close_succession_are_too_many_also_over_several_lives() {
        let mut offences = Offences::default();
        for _ in 0..2 {
            offend(&mut offences);
            accept(&mut offences, SOUND_FOR_AN_OFFENCE - 1);
            assert!(!offences.are_too_many());
        }
        offend(&mut offences);
        assert!(offences.are_too_many());
        offences.begin_life();
        assert!(!offences.are_too_many());
        offend(&mut offences);
        assert!(offences.are_too_many());
    }

    #[test]
    fn an_offence_now_and_then_in_a_long_run_is_made_good() {
        let mut offences = Offences::default();
        for _ in 0..100 {
            offend(&mut offences);
            assert!(!offences.are_too_many());
            accept(&mut offences, SOUND_FOR_AN_OFFENCE);
        }
    }
}
