//! Releases of a peer into sums with shared noise: its change on the lattice with its part of the noise, counted before it
//! leaves, and the same numbers again where a round is repeated.

use mingle_privacy::{CountFile, NoiseKey, PrivacyBudget, PrivacySettings, ProtectedUnit, SharedNoise};
use mingle_solving::{LearningError, Release, RoundStore};

use crate::settings::SharedPrivacy;

/// The relative error of a noise multiplier as an f64, generously.
const ROUNDING: f64 = 1e-12;
/// Bytes of a hash.
const HASH: usize = 32;

/// One peer's part of sums with shared noise.
#[derive(Debug)]
pub(super) struct PrivateSum {
    settings: PrivacySettings,
    noise: SharedNoise,
    members: usize,
    colluders: usize,
    protects: ProtectedUnit,
    /// The epsilon of all releases so far.
    epsilon: f64,
    /// The tokens that the names of releases depend on, as a hash.
    tokens: [u8; HASH],
    /// The round that the present attempt begins with.
    first_round: u64,
    /// The tokens of the release that the store keeps of the first round of the attempt.
    kept_tokens: Option<[u8; HASH]>,
    /// The round from which on its contributions are noise alone.
    reach: u64,
    /// Contributions since the start that were noise alone, since the training had diverged.
    diverged: u64,
    /// `true` once a contribution held nothing of this peer's data, since more would cost more than the maximum.
    is_spent: bool,
}

impl PrivateSum {
    /// The part of one of so many members, in sums of vectors of this length.
    ///
    /// # Errors
    /// The noise cannot be shared by so many, or costs more than Gaussian noise of the same size, by which it is counted.
    pub(super) fn new(
        SharedPrivacy { settings, colluders, protects }: SharedPrivacy,
        members: usize,
        dimension: usize,
    ) -> Result<Self, LearningError> {
        let noise =
            SharedNoise::new(settings.clip(), settings.noise(), members, colluders).map_err(LearningError::of)?;
        let multiplier = noise.multiplier(dimension);
        if multiplier < settings.noise() * (1.0 - ROUNDING) {
            let wanted = settings.noise();
            return Err(LearningError(format!(
                "{members} members would share a noise of {multiplier}, not of {wanted}"
            )));
        }
        let noise = match protects {
            ProtectedUnit::Member => noise,
            ProtectedUnit::Sample => noise.with_room_for_sums(),
        };
        Ok(Self {
            settings,
            noise,
            members,
            colluders,
            protects,
            epsilon: 0.0,
            tokens: [0; HASH],
            first_round: 0,
            kept_tokens: None,
            reach: u64::MAX,
            diverged: 0,
            is_spent: false,
        })
    }

    /// The epsilon of all that this peer has ever released.
    pub(super) fn epsilon(&self) -> f64 {
        self.epsilon
    }

    /// Returns `true` if this peer's last contribution was noise alone.
    pub(super) fn is_spent(&self) -> bool {
        self.is_spent
    }

    /// The guarantee of this peer's releases, for its user.
    pub(super) fn report(&self) -> serde_json::Value {
        serde_json::json!({
            "schema": "mingle.privacy-of-sums/1",
            "protects": self.protects,
            "epsilon": self.epsilon,
            "delta": self.settings.delta(),
            "epsilon_max": self.settings.epsilon_max(),
            "clip": self.settings.clip(),
            "noise": self.settings.noise(),
            "colluders": self.colluders,
            "members": self.members,
            "ended_with_noise_alone": self.is_spent,
            "diverged_rounds": self.diverged,
        })
    }

    /// Reads what was released before, and makes the key of the noise where there is none. Returns a number that others may
    /// know, and that changes with the key and with the data of this hash.
    ///
    /// # Errors
    /// The count cannot be read or written: what is left to spend is not known. Or it holds releases that leave no guarantee.
    pub(super) fn open(&mut self, data: &[u8; HASH], store: &mut dyn RoundStore) -> Result<[u8; HASH], LearningError> {
        let (file, key) = self.read(store)?;
        self.epsilon = self.budget(&file)?.spending().epsilon;
        Ok(key.fingerprint(data))
    }

    /// The token of an attempt that begins with this round: the name of the release that the store keeps of it, or else a new
    /// one.
    ///
    /// Training that is repeated may come to other numbers. A member that has released a round, lost what it released, and
    /// trains the round once more would otherwise be added to the same numbers of all others, which send what they sent
    /// before: the difference of the two sums would have no noise but its own. So members send a release again only where all
    /// keep one of the same name ([`take_tokens`](Self::take_tokens)).
    ///
    /// # Errors
    /// The store cannot be read, or there are no random numbers.
    pub(super) fn token(&mut self, round: u64, store: &dyn RoundStore) -> Result<[u8; HASH], LearningError> {
        let kept = store.released(round)?.and_then(|bytes| Some(head_of(&bytes)?.0));
        self.kept_tokens = kept.map(|(tokens, _)| tokens);
        match kept {
            Some((_, name)) => Ok(name),
            None => fresh(),
        }
    }

    /// The round from which on this member sends noise alone, in an attempt that begins with this round. Where it is another than
    /// in an attempt before, as its budget was spent meanwhile or its disk was put back, all release anew: one that sends noise
    /// alone beside the same numbers of all others would show by the difference what it sent before.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(super) fn reach(&mut self, round: u64, rounds: u64, store: &dyn RoundStore) -> Result<u64, LearningError> {
        let left = self.budget(&count_of(store)?)?.spending().changes_left;
        let kept = u64::from(store.released(round)?.is_some());
        self.first_round = round;
        self.reach = round.saturating_add(left).saturating_add(kept).min(rounds);
        Ok(self.reach)
    }

    /// Takes a hash of the tokens of all members. Where `all_keep_it`, as all have the same one, the first release of the attempt
    /// has the name of the one that is kept. All others have names that no attempt had before, since each attempt has tokens
    /// of its own: a member may have kept a release of a later round that another has lost.
    pub(super) fn take_tokens(&mut self, tokens: [u8; HASH], all_keep_it: bool) {
        self.tokens = tokens;
        self.kept_tokens = self.kept_tokens.filter(|_| all_keep_it);
    }

    /// The tokens that the name of a release of this round depends on.
    pub(super) fn tokens_of(&self, round: u64) -> [u8; HASH] {
        self.kept_tokens.filter(|_| round == self.first_round).unwrap_or(self.tokens)
    }

    /// The sum of gradients that `each` passes on, with its sign turned: each cut to the clip and put on the lattice by itself.
    /// A number for each parameter, exact in f32. Gradients that are not finite count as zero.
    ///
    /// # Errors
    /// That of `each`.
    pub(super) fn descent(
        &self,
        dimension: usize,
        each: impl FnOnce(&mut dyn FnMut(&[f32])) -> Result<(), LearningError>,
    ) -> Result<Vec<f32>, LearningError> {
        let mut sum = vec![0; dimension];
        each(&mut |gradient| {
            if gradient.len() == dimension {
                SharedNoise::add(&mut sum, &self.noise.quantize(gradient));
            }
        })?;
        self.noise.within_room(&mut sum);
        Ok(sum.into_iter().map(|number| -number as f32).collect())
    }

    /// The numbers to be summed for this change: one for each parameter, and the largest magnitude that any can have, so
    /// that the scale of the sum says nothing of the data. `name` is that of the release: the same wherever a round is
    /// repeated from the same model with the same members.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub(super) fn release(
        &mut self,
        name: [u8; HASH],
        release: Release,
        change: &[f32],
        store: &mut dyn RoundStore,
    ) -> Result<Vec<f32>, LearningError> {
        if let Some(before) = store.released(release.round)?.and_then(|bytes| decode(&bytes, &name, change.len() + 1)) {
            return Ok(before);
        }
        let (file, key) = self.read(store)?;
        // An error would show all others something about the data.
        self.diverged += u64::from(change.iter().any(|value| !value.is_finite()));
        let mut numbers = match self.protects {
            ProtectedUnit::Member => self.noise.quantize(change),
            #[allow(clippy::cast_possible_truncation)] // whole numbers below 2^24
            ProtectedUnit::Sample => change.iter().map(|number| *number as i64).collect(),
        };
        let has_more = release.round < self.reach;
        match self.budget(&file)?.next().filter(|_| has_more) {
            Some(after) => {
                store.keep_count(&self.counted(file).text().map_err(LearningError::of)?)?;
                self.epsilon = after.spending().epsilon;
            }
            // The noise of all is part of the guarantee of each.
            None => {
                numbers.fill(0);
                self.is_spent = true;
            }
        }
        let mut generator = key.generator(&name, &numbers);
        self.noise.add_noise(&mut numbers, &mut generator);
        numbers.push(self.noise.limit());
        store.keep_released(release.round, &encode((&self.tokens_of(release.round), &name), &numbers))?;
        Ok(numbers.into_iter().map(|number| number as f32).collect())
    }

    /// The mean change of all members, from the mean of their numbers.
    ///
    /// # Errors
    /// The numbers are not those of this noise.
    pub(super) fn mean_change(&self, mean: &[f32]) -> Result<Vec<f32>, LearningError> {
        match mean.split_last() {
            Some((limit, mean)) if f64::from(*limit) == self.noise.limit() as f64 => Ok(self.noise.values(mean)),
            _ => Err(LearningError(
                "the sum of all is not one of this noise: a member has another problem file, or sent rubbish"
                    .to_owned(),
            )),
        }
    }

    /// The budget of what this sum protects.
    fn budget(&self, file: &CountFile) -> Result<PrivacyBudget, LearningError> {
        let before = file.releases_of(self.protects, None).map_err(LearningError::of)?;
        Ok(PrivacyBudget::new(self.settings, before))
    }

    /// The count with one more release.
    fn counted(&self, mut file: CountFile) -> CountFile {
        let counted = match self.protects {
            ProtectedUnit::Member => &mut file.noised,
            ProtectedUnit::Sample => &mut file.of_samples,
        };
        *counted = counted.with(self.settings.noise(), 1);
        file
    }

    fn read(&self, store: &mut dyn RoundStore) -> Result<(CountFile, NoiseKey), LearningError> {
        let mut file = count_of(store)?;
        if let Some(key) = &file.sums {
            let key = key.clone();
            return Ok((file, key));
        }
        let key = NoiseKey::draw().map_err(LearningError::of)?;
        file.sums = Some(key.clone());
        store.keep_count(&file.text().map_err(LearningError::of)?)?;
        Ok((file, key))
    }
}

/// A number that no attempt ever had.
pub(super) fn fresh() -> Result<[u8; HASH], LearningError> {
    Ok(NoiseKey::draw().map_err(LearningError::of)?.fingerprint(&[0; HASH]))
}

/// The releases that the store has counted.
fn count_of(store: &dyn RoundStore) -> Result<CountFile, LearningError> {
    match store.count()? {
        Some(text) => CountFile::parse(&text).map_err(LearningError::of),
        None => Ok(CountFile::default()),
    }
}

/// Tokens and name of a release.
type Head = ([u8; HASH], [u8; HASH]);

/// BLAKE3 of the rest, the tokens and the name of the release, and its numbers.
fn encode((tokens, name): (&[u8; HASH], &[u8; HASH]), numbers: &[i64]) -> Vec<u8> {
    let mut rest = [*tokens, *name].concat();
    rest.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    [blake3::hash(&rest).as_bytes().as_slice(), &rest].concat()
}

/// Tokens, name and the bytes of the numbers, if the release is whole.
fn head_of(bytes: &[u8]) -> Option<(Head, &[u8])> {
    let (hash, rest) = bytes.split_first_chunk::<HASH>()?;
    let (tokens, behind) = rest.split_first_chunk::<HASH>().filter(|_| blake3::hash(rest).as_bytes() == hash)?;
    let (name, numbers) = behind.split_first_chunk::<HASH>()?;
    Some(((*tokens, *name), numbers))
}

/// The numbers of a release, if the bytes are whole, of that name, and so many.
fn decode(bytes: &[u8], name: &[u8; HASH], numbers: usize) -> Option<Vec<f32>> {
    let ((_, named), rest) = head_of(bytes)?;
    let (words, odd) = rest.as_chunks();
    let is_it = named == *name && words.len() == numbers && odd.is_empty();
    is_it.then(|| words.iter().map(|word| i64::from_le_bytes(*word) as f32).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use mingle_solving::MemoryStore;

    use super::*;

    #[test]
    fn noise_of_any_size_is_shared_by_any_number_of_members() {
        for members in 3..40 {
            for noise in [0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 4.042, 5.0, 7.0, 10.0] {
                let settings = PrivacySettings::new(1.0, noise, 1e4, 1e-5).unwrap();
                for colluders in [0, 1, members - 2] {
                    let protects = ProtectedUnit::Member;
                    PrivateSum::new(SharedPrivacy { settings, colluders, protects }, members, 10_000).unwrap();
                }
            }
        }
    }

    fn private(protects: ProtectedUnit, releases: u64) -> PrivateSum {
        let settings = PrivacySettings::for_changes(1.0, releases, 8.0, 1e-5).unwrap();
        PrivateSum::new(SharedPrivacy { settings, colluders: 1, protects }, 4, 3).unwrap()
    }

    fn release(private: &mut PrivateSum, store: &mut MemoryStore, round: u64) {
        let name = [round as u8; HASH];
        private.release(name, Release { round, members: [7; HASH] }, &[0.1; 3], store).unwrap();
    }

    #[test]
    fn budgets_reach_as_far_in_each_attempt_unless_a_disk_was_put_back() {
        let mut private = private(ProtectedUnit::Member, 5);
        let mut store = MemoryStore::default();
        let mut reaches = Vec::new();
        let mut copy = None;
        for round in 0..7 {
            reaches.push(private.reach(round, 9, &store).unwrap());
            release(&mut private, &mut store, round);
            // Killed before the sum was known.
            reaches.push(private.reach(round, 9, &store).unwrap());
            assert_eq!(private.is_spent(), round >= 5);
            if round == 1 {
                copy = Some(store.clone());
            }
        }
        assert_eq!(reaches[..11], [5; 11], "of 5 releases, up to where none is left");
        // A disk of round 1 at round 3: three releases are left there, where one was.
        assert_eq!(private.reach(3, 9, &copy.unwrap()).unwrap(), 6);
        assert_eq!(private.reach(0, 2, &MemoryStore::default()).unwrap(), 2, "no further than the rounds");
    }

    #[test]
    fn one_sample_more_or_less_changes_a_sum_by_no_more_than_the_clip() {
        let private = private(ProtectedUnit::Sample, 5);
        let gradients: Vec<[f32; 3]> = (0..40).map(|at| [at as f32 / 7.0 - 2.0, -0.3, (at % 3) as f32]).collect();
        let descent = |without: Option<usize>| {
            let each = |take: &mut dyn FnMut(&[f32])| {
                let kept = gradients.iter().enumerate().filter(|(at, _)| Some(*at) != without);
                kept.for_each(|(_, gradient)| take(gradient));
                Ok(())
            };
            let numbers = private.descent(3, each).unwrap();
            private.noise.values(&numbers).into_iter().map(f64::from).collect::<Vec<f64>>()
        };
        let all = descent(None);
        for at in 0..gradients.len() {
            let squares = all.iter().zip(descent(Some(at))).map(|(one, other)| (one - other).powi(2));
            let distance = squares.sum::<f64>().sqrt();
            assert!(distance <= 1.0 + 1e-6, "sample {at} changes the sum by {distance}");
        }
        let norm = |gradient: &[f32; 3]| gradient.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt();
        for (place, sum) in all.iter().enumerate() {
            let expected = gradients.iter().map(|gradient| f64::from(gradient[place]) / norm(gradient).max(1.0));
            assert!((sum + expected.sum::<f64>()).abs() < 0.05, "it is the sum of gradients cut to the clip");
        }
    }

    #[test]
    fn sums_of_samples_are_counted_apart_and_leave_no_guarantee_for_a_whole_member() {
        let mut store = MemoryStore::default();
        let mut of_members = private(ProtectedUnit::Member, 5);
        release(&mut of_members, &mut store, 0);
        let mut of_samples = private(ProtectedUnit::Sample, 5);
        of_samples.open(&[1; HASH], &mut store).unwrap();
        assert!(of_samples.epsilon() > 0.0, "what hides a member hides its samples");
        for round in 1..6 {
            release(&mut of_samples, &mut store, round);
        }
        assert!(of_samples.is_spent());
        let file = count_of(&store).unwrap();
        assert_eq!((file.noised.count(), file.of_samples.count()), (1, 4));
        let refused = of_members.open(&[1; HASH], &mut store).unwrap_err().to_string();
        assert!(refused.contains("no guarantee for the whole member"), "{refused}");
    }

    #[test]
    fn a_sum_beyond_the_room_of_a_contribution_is_held_at_its_border() {
        let private = private(ProtectedUnit::Sample, 5);
        let each = |take: &mut dyn FnMut(&[f32])| {
            (0..60_000).for_each(|_| take(&[1.0, 0.0, f32::NAN]));
            (0..60_000).for_each(|_| take(&[1.0, 0.0, 0.0]));
            Ok(())
        };
        let numbers = private.descent(3, each).unwrap();
        let limit = private.noise.limit() as f32;
        assert!(
            numbers[0] < -0.9 * limit && numbers[0] > -limit && numbers[1..] == [0.0, 0.0],
            "{numbers:?} of {limit}"
        );
    }
}
