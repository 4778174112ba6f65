//! Patches between model files, through `mingle_patch::apply`.

use mingle_patch::{ModelBytes, PatchError, apply, encode};

use crate::seeds::Seed;

/// Bytes of a patch before the header of the new file: a name, and BLAKE3 of both files.
pub const HEAD: usize = 72;

/// The model file that patches change: numbers of four, two and one bytes.
///
/// # Panics
/// Never: the file is sound.
pub fn before() -> ModelBytes {
    of(|index| (index as f32 / 100.0).to_le_bytes(), "before")
}

/// A model file of the same tensors: 300 numbers of `F32`, 40 of `BF16` and 4 bytes, with a remark in its header.
///
/// # Panics
/// Never: the file is sound.
pub fn of(number: impl Fn(usize) -> [u8; 4], remark: &str) -> ModelBytes {
    let mut header = format!(
        r#"{{"__metadata__":{{"remark":"{remark}"}},"a":{{"dtype":"F32","shape":[30,10],"data_offsets":[0,1200]}},"b":{{"dtype":"BF16","shape":[40],"data_offsets":[1200,1280]}},"c":{{"dtype":"U8","shape":[4],"data_offsets":[1280,1284]}}}}"#
    );
    header.push_str(&" ".repeat(header.len().next_multiple_of(8) - header.len()));
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.into_bytes());
    bytes.extend((0..321).flat_map(number));
    ModelBytes::parse(bytes).expect("the file is sound")
}

/// Checks bytes as a patch after its head, which is that of a patch on [`before`].
///
/// The patch is refused with a reason, or leads to a model file of the same tensors. It leads to the same one again, once
/// it names it.
///
/// # Panics
/// If any of that does not hold.
pub fn check(input: &[u8]) {
    let before = before();
    let patch = |after: [u8; 32]| [b"mingpat1".as_slice(), &before.digest(), &after, input].concat();
    match apply(&before, &patch([0; 32])) {
        Err(PatchError::OtherResult { found, .. }) => match apply(&before, &patch(*found.as_bytes())) {
            Ok(after) => assert!(after.has_layout_of(&before) && after.digest() == *found.as_bytes()),
            Err(PatchError::OtherLayout) => {}
            Err(error) => panic!("{error}"),
        },
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(after) => panic!("a file of hash 0: {after:?}"),
    }
}

/// Patches without their heads: few numbers changed, many, and none.
///
/// # Panics
/// Never: the tensors are the same.
pub fn seeds() -> Vec<Seed<Vec<u8>>> {
    let before = before();
    let number = |index: usize, is_changed: bool| {
        let step = if is_changed { 1e-4 } else { 0.0 };
        (index as f32 / 100.0 + step).to_le_bytes()
    };
    let to = |is_changed: fn(usize) -> bool, remark: &str| {
        let after = of(|index| number(index, is_changed(index)), remark);
        encode(&before, &after).expect("the tensors are the same")[HEAD..].to_vec()
    };
    vec![
        ("few", to(|index| index % 37 == 0, "few")),
        ("many", to(|_| true, "many numbers")),
        ("none", to(|_| false, "none")),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_seed_is_a_patch() {
        for (name, seed) in seeds() {
            let before = before();
            let head = [b"mingpat1".as_slice(), &before.digest(), &[0; 32]].concat();
            let error = apply(&before, &[head, seed.clone()].concat()).expect_err("no file has hash 0");
            assert!(matches!(error, PatchError::OtherResult { .. }), "{name}: {error}");
            check(&seed);
        }
    }
}
