//! The effect of a codec on a plan, in words.

use mingle_protocol::{Codec, CodecChoice, Encodings, Schedule};

/// A description such as `int8, 0.51 of the bytes of f32: 24 of 36 parcels are sent in it, 12 in f32`.
fn describe(encodings: &Encodings, codec: Codec, dimension: usize) -> String {
    let (parcels, coarse) = encodings.share_in(codec);
    let whole = parcels * Codec::F32.encoded_len(dimension) as u64;
    let share = encodings.bytes(dimension) as f64 / whole.max(1) as f64;
    let sent = format!("{codec}, {share:.2} of the bytes of f32");
    match finer(encodings, codec) {
        None => sent,
        Some(finer) => format!("{sent}: {coarse} of {parcels} parcels are sent in it, {finer}"),
    }
}

/// Lines that introduce how a swarm sends its models under a plan; none where it is in f32.
pub fn introduce(schedule: &Schedule, choice: CodecChoice, dimension: usize, momentum: f64) -> Vec<String> {
    let chosen = choice.under(schedule, dimension);
    let codec = chosen.codec;
    if codec == Codec::F32 {
        return Vec::new();
    }
    let why = chosen.reason().map_or_else(String::new, |reason| format!(" ({reason})"));
    let described = describe(&schedule.encodings(codec), codec, dimension);
    let warning = drift(schedule, codec, momentum).map(|warning| format!("warning  {warning}"));
    std::iter::once(format!("codec    {described}{why}")).chain(warning).collect()
}

/// The reason for which not all parcels of a plan are sent in the requested codec; `None` if they are.
pub fn objection(encodings: &Encodings, codec: Codec) -> Option<String> {
    let (parcels, coarse) = encodings.share_in(codec);
    let finer = finer(encodings, codec)?;
    if codec.of_wholes() != codec {
        return Some(format!(
            "{codec} is for differences to a model that all peers had in common, which this plan never gives them: it sends \
             {finer}; a plan with exact averages does (mingle plan make --method exact-average)"
        ));
    }
    Some(format!(
        "this plan leaves {coarse} of {parcels} parcels a period to {codec}; {finer}, since their senders keep so little \
         weight that what {codec} rounds off would outweigh it"
    ))
}

/// A warning of a codec under which peers drift apart, by the rounds from one exact average to the next and the momentum
/// across rounds; `None` where they do not.
pub fn drift(schedule: &Schedule, codec: Codec, momentum: f64) -> Option<String> {
    let longest = codec.longest_period_with_momentum().filter(|_| momentum > 0.0)?;
    let rounds = schedule.rounds_between_exact_averages().filter(|rounds| *rounds > longest)?;
    Some(format!(
        "{codec} with momentum across rounds, and exact averages {rounds} rounds apart: models may drift apart without \
         bound, as they did with momentum 0.8 over 16 rounds in int3; take --codec auto, exact averages at most \
         {longest} rounds apart, or --momentum-across-rounds off (docs/communication.md)"
    ))
}

/// The parcels in other codecs, such as `12 in f32`; `None` if all are in the requested one.
fn finer(encodings: &Encodings, codec: Codec) -> Option<String> {
    let others = encodings.parcels().iter().filter(|(other, _)| **other != codec);
    let words: Vec<String> = others.map(|(codec, count)| format!("{count} in {codec}")).collect();
    (!words.is_empty()).then(|| words.join(", "))
}
