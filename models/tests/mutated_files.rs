//! Files of data and models that are damaged, cut off or made up: they are refused, or what is read of them is sound.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use mingle_models::{CsvSource, DataSource, LabelColumn, ModelFile};
use mingle_mutations::for_each_input;

fn table(rows: usize) -> Vec<u8> {
    let row = |row: usize| format!("{}.5,{},\"{}\",{}\n", row, row * 7 % 5, row % 3, ["ham", "spam"][row % 2]);
    let rows: String = (0..rows).map(row).collect();
    format!("x, y ,z,label\n{rows}").into_bytes()
}

#[test]
fn mutated_tables_are_refused_or_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.csv");
    let seeds = [table(40), table(12), b"1;2;3\n4;5;6\n".to_vec(), b"\xef\xbb\xbfa,b\n1,0\n2,1\n".to_vec()];
    for_each_input("csv", &seeds, |input| {
        fs::write(&path, input).unwrap();
        let source = DataSource::Csv(CsvSource { path: path.clone(), label: LabelColumn::Last });
        if let Ok(data) = source.load(1) {
            assert!(!data.train.is_empty());
        }
    });
}

/// So many images of 4 by 4, or their labels, as IDX has them.
fn idx(count: u32, is_image: bool) -> Vec<u8> {
    let sizes: Vec<u32> = if is_image { vec![0x803, count, 4, 4] } else { vec![0x801, count] };
    let values = count * if is_image { 16 } else { 1 };
    let head = sizes.iter().flat_map(|size| size.to_be_bytes());
    head.chain((0..values).map(|value| (value % 10) as u8)).collect()
}

#[test]
fn mutated_idx_files_are_refused_or_read() {
    let folder = tempfile::tempdir().unwrap();
    let sound = [
        ("train-images-idx3-ubyte", idx(30, true)),
        ("train-labels-idx1-ubyte", idx(30, false)),
        ("t10k-images-idx3-ubyte", idx(10, true)),
        ("t10k-labels-idx1-ubyte", idx(10, false)),
    ];
    let put = |folder: &Path| sound.iter().for_each(|(name, bytes)| fs::write(folder.join(name), bytes).unwrap());
    put(folder.path());
    let source = DataSource::Idx(folder.path().to_path_buf());
    source.load(1).unwrap();
    let seeds: Vec<Vec<u8>> = sound.iter().map(|(_, bytes)| bytes.clone()).collect();
    let mut turn = 0;
    for_each_input("idx", &seeds, |input| {
        turn = (turn + 1) % sound.len();
        let (name, bytes) = &sound[turn];
        fs::write(folder.path().join(name), input).unwrap();
        drop(source.load(1));
        fs::write(folder.path().join(name), bytes).unwrap();
    });
}

#[test]
fn mutated_model_files_are_refused_or_outlined() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    let header = br#"{"__metadata__":{"a":"b"},"linear.weight":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"linear.bias":{"dtype":"F32","shape":[2],"data_offsets":[24,32]}}"#;
    let sound = [&(header.len() as u64).to_le_bytes()[..], header, &[0; 32]].concat();
    for_each_input("safetensors", &[sound], |input| {
        fs::write(&path, input).unwrap();
        if let Ok(file) = ModelFile::read(&path) {
            let _ = (file.parameter_count(), file.model(), file.first_not_finite().is_some());
        }
    });
}

#[test]
fn mutated_cifar_files_are_refused_or_read() {
    let folder = tempfile::tempdir().unwrap();
    let source = DataSource::Cifar10(folder.path().to_path_buf());
    let names = ["data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch"];
    let file = |name: &str| folder.path().join(format!("{name}.bin"));
    let image = |label: u8| [vec![label], vec![7; 3072]].concat();
    let sound = [image(0), image(9)].concat();
    names.iter().for_each(|name| fs::write(file(name), &sound).unwrap());
    for_each_input("cifar", &[sound, image(3)], |input| {
        fs::write(file("test_batch"), input).unwrap();
        if let Ok(data) = source.load(1) {
            assert_eq!(data.test.len(), input.len() / 3073);
        }
    });
}
