//! The effect of a codec on a plan, in words.

use mingle_protocol::{Codec, Encodings};

/// A description such as `int8, 0.51 of the bytes of f32: 24 of 36 parcels are sent in it, 12 in f32`.
pub fn describe(encodings: &Encodings, codec: Codec, dimension: usize) -> String {
    let (parcels, coarse) = encodings.share_in(codec);
    let whole = parcels * Codec::F32.encoded_len(dimension) as u64;
    let share = encodings.bytes(dimension) as f64 / whole.max(1) as f64;
    let sent = format!("{codec}, {share:.2} of the bytes of f32");
    match finer(encodings, codec) {
        None => sent,
        Some(finer) => format!("{sent}: {coarse} of {parcels} parcels are sent in it, {finer}"),
    }
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

/// The parcels in other codecs, such as `12 in f32`; `None` if all are in the requested one.
fn finer(encodings: &Encodings, codec: Codec) -> Option<String> {
    let others = encodings.parcels().iter().filter(|(other, _)| **other != codec);
    let words: Vec<String> = others.map(|(codec, count)| format!("{count} in {codec}")).collect();
    (!words.is_empty()).then(|| words.join(", "))
}
