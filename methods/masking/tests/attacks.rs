//! Each way to learn one member's part of a sum, and that it fails; and that honest sums are exact.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use ctr::cipher::{KeyIvInit, StreamCipher};
use mingle_masking::{
    Announcement, FixedPoint, MOST_PAIRED, MaskingError, Masks, Roster, SeededSigner, SumKey, SumSigner, Width,
};
use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;
use sha2::{Digest, Sha256};

const CONTEXT: [u8; 32] = [3; 32];
/// A hash of what all members have seen alike.
const SEEN: [u8; 32] = [4; 32];

/// The members of a swarm with their keys of one attempt.
struct Swarm {
    signers: Vec<SeededSigner>,
    keys: Vec<SumKey>,
}

fn signers(members: usize) -> Vec<SeededSigner> {
    (0..members).map(|member| SeededSigner::new(5, member)).collect()
}

fn roster_of(signers: &[SeededSigner], attempt: u64) -> Roster {
    let identities: Arc<[[u8; 32]]> = signers.iter().map(SeededSigner::identity).collect();
    Roster::new(&CONTEXT, attempt, identities).unwrap()
}

impl Swarm {
    fn new(members: usize) -> Self {
        let signers = signers(members);
        let keys = Self::draw(&signers, 0);
        Self { signers, keys }
    }

    fn draw(signers: &[SeededSigner], attempt: u64) -> Vec<SumKey> {
        let roster = roster_of(signers, attempt);
        signers.iter().enumerate().map(|(me, signer)| SumKey::draw(roster.clone(), me, signer).unwrap()).collect()
    }

    fn announcements(&self) -> Vec<Announcement> {
        self.keys.iter().map(SumKey::announcement).collect()
    }

    fn masks(self) -> Vec<Masks> {
        let announcements = self.announcements();
        let commitments: Vec<[u8; 32]> = self.keys.iter().map(SumKey::commitment).collect();
        self.keys.into_iter().map(|key| key.agree(&announcements, Some(&commitments)).unwrap()).collect()
    }
}

fn masked(masks: &mut Masks, number: u64, width: Width, values: &[u64]) -> Vec<u64> {
    let mut words = values.to_vec();
    masks.mask(number, &SEEN, width, &mut words).unwrap();
    words
}

fn sum<'a>(width: Width, parts: impl IntoIterator<Item = &'a Vec<u64>>) -> Vec<u64> {
    parts
        .into_iter()
        .cloned()
        .reduce(|total, part| match width {
            Width::Half => {
                let lower = |(a, b): (&u64, &u64)| u64::from((*a as u32).wrapping_add(*b as u32));
                let upper = |(a, b): (&u64, &u64)| u64::from(((a >> 32) as u32).wrapping_add((b >> 32) as u32)) << 32;
                total.iter().zip(&part).map(|pair| lower(pair) | upper(pair)).collect()
            }
            Width::Narrow => total.iter().zip(part).map(|(a, b)| a.wrapping_add(b)).collect(),
            Width::Wide => {
                let numbers = total.as_chunks().0.iter().zip(part.as_chunks().0);
                numbers.flat_map(|(a, b)| Width::split(Width::join(*a).wrapping_add(Width::join(*b)))).collect()
            }
        })
        .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn the_sum_of_all_masked_vectors_is_the_sum_of_the_vectors(
        members in 2_usize..12, length in 1_usize..1_500, number in any::<u64>(), seed in any::<u64>(),
    ) {
        let mut dice = ChaCha20Rng::seed_from_u64(seed);
        for width in [Width::Half, Width::Narrow, Width::Wide] {
            let mut masks = Swarm::new(members).masks();
            let values: Vec<Vec<u64>> =
                (0..members).map(|_| (0..width.words(length)).map(|_| dice.next_u64()).collect()).collect();
            let sent: Vec<Vec<u64>> =
                masks.iter_mut().zip(&values).map(|(masks, values)| masked(masks, number, width, values)).collect();
            prop_assert_eq!(sum(width, &sent), sum(width, &values));
            prop_assert!(sent.iter().zip(&values).all(|(sent, values)| sent != values));
        }
    }
}

#[test]
fn masks_cancel_where_only_neighbours_of_a_drawn_graph_share_them() {
    let members = MOST_PAIRED + 12;
    let mut masks = Swarm::new(members).masks();
    assert!(masks.iter().all(|masks| masks.neighbours() == MOST_PAIRED));
    let sent: Vec<Vec<u64>> = masks.iter_mut().map(|masks| masked(masks, 1, Width::Narrow, &[1, 2])).collect();
    let members = members as u64;
    assert_eq!(sum(Width::Narrow, &sent), [members, 2 * members]);
}

/// The share of set bits, and the chi-squared statistic of bytes with 255 degrees of freedom.
fn looks(words: &[u64]) -> (f64, f64) {
    let mut counts = [0_u32; 256];
    words.iter().flat_map(|word| word.to_le_bytes()).for_each(|byte| counts[usize::from(byte)] += 1);
    let expected = words.len() as f64 * 8.0 / 256.0;
    let chi = counts.iter().map(|count| (f64::from(*count) - expected).powi(2) / expected).sum();
    let ones: u32 = words.iter().map(|word| word.count_ones()).sum();
    (f64::from(ones) / (64.0 * words.len() as f64), chi)
}

/// The words that a parent sees of a leaf, and of any part of the members, are uniform; only the whole sum is not.
#[test]
fn what_a_leaf_sends_and_every_partial_sum_are_uniform_and_tell_nothing_of_the_values() {
    const LENGTH: usize = 40_000;
    for width in [Width::Half, Width::Narrow, Width::Wide] {
        let (members, words) = (6, width.words(LENGTH));
        let fixed = FixedPoint::new(width, members, 3, 3).unwrap();
        let values: Vec<Vec<u64>> = (0..members).map(|me| fixed.encode(&vec![1.5 + me as f64 / 8.0; LENGTH])).collect();
        let mut masks = Swarm::new(members).masks();
        let sent: Vec<Vec<u64>> =
            masks.iter_mut().zip(&values).map(|(masks, values)| masked(masks, 9, width, values)).collect();
        for subset in 1_u32..(1 << members) - 1 {
            let part =
                sum(width, sent.iter().enumerate().filter(|(me, _)| subset >> me & 1 == 1).map(|(_, part)| part));
            assert_eq!(part.len(), words);
            let (ones, chi) = looks(&part);
            // Six standard deviations of either.
            assert!((ones - 0.5).abs() < 3.0 / (64.0 * words as f64).sqrt(), "{subset:b}: {ones}");
            assert!((chi - 255.0).abs() < 6.0 * (2.0_f64 * 255.0).sqrt(), "{subset:b}: {chi}");
        }
        assert!(looks(&sum(width, &sent)).1 > 1e5);
        assert_eq!(sum(width, &sent), sum(width, &values));
    }
}

#[test]
fn a_forged_key_is_refused_and_its_member_named() {
    for (what, expected) in [("key", 2), ("signature", 2), ("another member's", 2), ("own", 0)] {
        let mut swarm = Swarm::new(4);
        let mut announcements = swarm.announcements();
        match what {
            "key" => {
                announcements[2].key =
                    SumKey::draw(roster_of(&signers(4), 0), 2, &SeededSigner::new(6, 2)).unwrap().announcement().key;
            }
            "signature" => announcements[2].signature[40] ^= 1,
            "another member's" => announcements[2] = announcements[3],
            // The attacker that stands in for this member to all others, and to it for all others.
            _ => announcements[0] = announcements[1],
        }
        let refused = swarm.keys.remove(0).agree(&announcements, None).unwrap_err();
        let named = if expected == 0 { MaskingError::OwnKey { me: 0 } } else { MaskingError::Forged { member: 2 } };
        assert_eq!(refused, named, "{what}");
    }
}

/// Keys of an attempt that is over, of which an attacker recorded all, or that a restarted member has lost.
#[test]
fn a_key_of_another_attempt_is_no_key_of_this_one() {
    let mut swarm = Swarm::new(3);
    let mut announcements = swarm.announcements();
    announcements[1] = Swarm::draw(&swarm.signers, 1)[1].announcement();
    let refused = swarm.keys.remove(0).agree(&announcements, None).unwrap_err();
    assert_eq!(refused, MaskingError::Forged { member: 1 });
}

#[test]
fn a_member_with_another_list_of_members_is_found_out_by_all_with_the_right_one() {
    let swarm = Swarm::new(4);
    let mut other: Vec<SeededSigner> = signers(4);
    other[3] = SeededSigner::new(6, 3);
    let told_a_lie = SumKey::draw(roster_of(&other, 0), 1, &swarm.signers[1]).unwrap();
    let mut announcements = swarm.announcements();
    announcements[1] = told_a_lie.announcement();
    let lied_to = told_a_lie.agree(&announcements, None).unwrap_err();
    assert!(matches!(lied_to, MaskingError::Forged { member: 0 }), "{lied_to}");
    for key in swarm.keys.into_iter().enumerate().filter(|(me, _)| *me != 1).map(|(_, key)| key) {
        assert_eq!(key.agree(&announcements, None).unwrap_err(), MaskingError::Forged { member: 1 });
    }
}

/// The mask between an attacker and a member, as the attacker computes it: added by the lower of them.
fn mask_with(
    secret: [u8; 32],
    key: [u8; 32],
    transcript: &[u8; 32],
    [low, high]: [u64; 2],
    number: u64,
    length: usize,
) -> Vec<u64> {
    let shared = x25519_dalek::x25519(secret, key);
    let hkdf = hkdf::Hkdf::<Sha256>::new(Some(b"mingle masked sums pair 2"), &shared);
    let mut seed = [0; 32];
    hkdf.expand_multi_info(&[&transcript[..], &low.to_le_bytes(), &high.to_le_bytes()], &mut seed).unwrap();
    let mut key = [0; 32];
    let expanded = hkdf::Hkdf::<Sha256>::from_prk(&seed).unwrap();
    expanded.expand_multi_info(&[b"mingle masked sums mask 1", &SEEN], &mut key).unwrap();
    let mut first_block = [0; 16];
    first_block[..8].copy_from_slice(&number.to_be_bytes());
    let mut bytes = vec![0; 8 * length];
    ctr::Ctr64BE::<aes::Aes256>::new(&key.into(), &first_block.into()).apply_keystream(&mut bytes);
    bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect()
}

/// The transcript over these keys; over none, if that is what the masks are bound to.
fn transcript(roster: &Roster, keys: &[Announcement]) -> [u8; 32] {
    let mut hasher = Sha256::new_with_prefix(b"mingle masked sums transcript 1");
    hasher.update(roster.digest());
    keys.iter().for_each(|announced| hasher.update(announced.key));
    hasher.finalize().into()
}

/// A member that announces two keys, both signed: one to member 0, the other to the rest. Signatures do not show it. It
/// takes away its masks with each member under the key that this member has; those of honest members with each other do
/// not cancel, since they name all keys.
#[test]
fn two_keys_of_one_member_spoil_the_sum_and_reveal_nothing() {
    const LENGTH: usize = 2_000;
    let swarm = Swarm::new(4);
    let roster = roster_of(&swarm.signers, 0);
    let double = SumKey::draw(roster.clone(), 3, &swarm.signers[3]).unwrap();
    // The attacker knows its own secrets: the first two that its identity draws.
    let attacker = SeededSigner::new(5, 3);
    let secrets = [(); 2].map(|()| attacker.fresh_secret().unwrap());
    let one = swarm.announcements();
    let mut two = one.clone();
    two[3] = double.announcement();
    let views = [&two, &one, &one];
    let mut sent = Vec::new();
    for ((key, view), value) in swarm.keys.into_iter().zip(views).zip([5_u64, 6, 7]) {
        let mut masks = key.agree(view, None).unwrap();
        sent.push(masked(&mut masks, 1, Width::Narrow, &vec![value; LENGTH]));
    }
    let seen = sum(Width::Narrow, &sent);
    for is_bound_to_keys in [true, false] {
        let mut left = seen.clone();
        for (member, view) in views.iter().enumerate() {
            let keys: &[Announcement] = if is_bound_to_keys { view } else { &[] };
            let secret = secrets[usize::from(member == 0)];
            let pair = [member as u64, 3];
            let mask = mask_with(secret, one[member].key, &transcript(&roster, keys), pair, 1, LENGTH);
            left.iter_mut().zip(mask).for_each(|(left, mask)| *left = left.wrapping_sub(mask));
        }
        assert!(looks(&left).1 < 400.0, "the attacker has the sum of the others: {:?}", &left[..3]);
    }
    // With one key for all, its masks leave the total of the others, so the attack is computed rightly.
    let mut honest = Swarm::new(4)
        .keys
        .into_iter()
        .take(3)
        .zip([5_u64, 6, 7])
        .map(|(key, value)| masked(&mut key.agree(&one, None).unwrap(), 1, Width::Narrow, &vec![value; LENGTH]));
    let mut left = [honest.next().unwrap(), honest.next().unwrap(), honest.next().unwrap()];
    for (member, sent) in left.iter_mut().enumerate() {
        let key = one[member].key;
        let mask = mask_with(secrets[0], key, &transcript(&roster, &one), [member as u64, 3], 1, LENGTH);
        sent.iter_mut().zip(mask).for_each(|(left, mask)| *left = left.wrapping_sub(mask));
    }
    assert_eq!(sum(Width::Narrow, &left), vec![18; LENGTH]);
}

/// A relay shows one member other numbers than the rest, so that it sends something else than it would. Whatever part of the
/// members the attacker adds up, and all of them, is uniform.
#[test]
fn masks_of_members_that_have_seen_different_things_do_not_cancel() {
    const LENGTH: usize = 40_000;
    for lied_to in 0..4 {
        let mut masks = Swarm::new(4).masks();
        let sent = masks.iter_mut().enumerate().map(|(member, masks)| {
            let seen = if member == lied_to { [5; 32] } else { SEEN };
            let mut words = vec![7; LENGTH];
            masks.mask(1, &seen, Width::Narrow, &mut words).unwrap();
            words
        });
        let sent: Vec<Vec<u64>> = sent.collect();
        assert!(looks(&sum(Width::Narrow, &sent)).1 < 400.0, "member {lied_to} is added to the rest");
        let rest = sent.iter().enumerate().filter(|(member, _)| *member != lied_to).map(|(_, words)| words);
        assert!(looks(&sum(Width::Narrow, rest)).1 < 400.0, "the rest, without member {lied_to}");
    }
}

/// One difference of two masked vectors under the same mask is the difference of their values.
#[test]
fn no_two_sums_share_a_mask_and_a_number_is_masked_once() {
    let mut masks = Swarm::new(3).masks();
    let values = vec![0; 4_000];
    let sent: Vec<Vec<u64>> = (1..6).map(|number| masked(&mut masks[0], number, Width::Narrow, &values)).collect();
    for (at, one) in sent.iter().enumerate() {
        for other in &sent[..at] {
            let differences: Vec<u64> = one.iter().zip(other).map(|(a, b)| a.wrapping_sub(*b)).collect();
            assert!(looks(&differences).1 < 400.0, "{at}");
        }
    }
    let mut words = vec![0];
    for number in [5, 4, 0] {
        let refused = masks[0].mask(number, &SEEN, Width::Narrow, &mut words).unwrap_err();
        assert_eq!((refused, &words), (MaskingError::Reused { number, last: 5 }, &vec![0]));
    }
    assert!(masks[0].mask(6, &SEEN, Width::Narrow, &mut words).is_ok() && words != [0]);
    assert_eq!(masks[0].mask(7, &SEEN, Width::Wide, &mut words), Err(MaskingError::Words { words: 1 }));
}

/// A member that restarts draws another key, also for an attempt of the same number, as a home put back to an older copy
/// has it: the two vectors that it sends under sum 1 share no mask.
#[test]
fn a_restarted_member_never_sends_two_inputs_under_one_mask() {
    let values = vec![0; 4_000];
    let swarm = Swarm::new(3);
    let again = Swarm::draw(&swarm.signers, 0);
    let announcements = swarm.announcements();
    let [first, ..] = &mut swarm.masks()[..] else { panic!("three members") };
    let mut renewed = announcements;
    renewed[0] = again[0].announcement();
    let mut second = again.into_iter().next().unwrap().agree(&renewed, None).unwrap();
    let (one, two) = (masked(first, 1, Width::Narrow, &values), masked(&mut second, 1, Width::Narrow, &values));
    let differences: Vec<u64> = one.iter().zip(&two).map(|(a, b)| a.wrapping_sub(*b)).collect();
    assert!(looks(&differences).1 < 400.0);
}

/// A key of small order shares no secret: its owner, or anybody, could compute the mask.
#[test]
fn a_signed_key_of_small_order_is_refused() {
    let swarm = Swarm::new(3);
    let roster = roster_of(&swarm.signers, 0);
    let mut announcements = swarm.announcements();
    // What a member that follows no protocol would sign: the statement of the key 0.
    let statement = [&b"mingle masked sums key 1"[..], roster.digest(), &2_u64.to_le_bytes(), &[0; 32]].concat();
    let signature = swarm.signers[2].sign(&statement).unwrap();
    announcements[2] = Announcement { key: [0; 32], signature };
    let key = swarm.keys.into_iter().next().unwrap();
    assert_eq!(key.agree(&announcements, None).unwrap_err(), MaskingError::SmallOrder { member: 2 });
}

/// In a drawn graph, who announces last could choose the keys for which the graph suits it.
#[test]
fn a_key_that_was_not_committed_to_is_refused_where_the_graph_is_drawn() {
    let swarm = Swarm::new(MOST_PAIRED + 4);
    let mut announcements = swarm.announcements();
    let commitments: Vec<[u8; 32]> = swarm.keys.iter().map(SumKey::commitment).collect();
    let chosen = SumKey::draw(roster_of(&swarm.signers, 0), 7, &swarm.signers[7]).unwrap();
    announcements[7] = chosen.announcement();
    let mut keys = swarm.keys.into_iter();
    let refused = keys.next().unwrap().agree(&announcements, Some(&commitments)).unwrap_err();
    assert_eq!(refused, MaskingError::Commitment { member: 7 });
    let refused = keys.next().unwrap().agree(&announcements, None).unwrap_err();
    assert_eq!(refused, MaskingError::Announcements { got: 0, members: MOST_PAIRED + 4 });
}

#[test]
fn lists_that_hide_nothing_are_refused() {
    let identity = |member| SeededSigner::new(5, member).identity();
    let new = |identities: &[[u8; 32]]| Roster::new(&CONTEXT, 0, identities.into()).unwrap_err();
    assert_eq!(new(&[identity(0)]), MaskingError::Alone { members: 1 });
    let twice = [identity(0), identity(1), identity(0)];
    assert_eq!(new(&twice), MaskingError::SameIdentity { one: 0, other: 2 });
}
