//! Reading data, good and bad.

#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use mingle_datasets::{DataSet, DataSource, SampleShape};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tempfile::TempDir;

fn idx(magic: u32, sizes: &[u32], values: &[u8]) -> Vec<u8> {
    let mut file: Vec<u8> = [magic].iter().chain(sizes).flat_map(|word| word.to_be_bytes()).collect();
    file.extend_from_slice(values);
    file
}

/// Two training images and one test image of 2 x 3 pixels.
fn idx_folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let pixels: Vec<u8> = (0..12).map(|pixel| pixel * 20).collect();
    write(&folder, "train-images-idx3-ubyte", &idx(0x803, &[2, 2, 3], &pixels));
    write(&folder, "train-labels-idx1-ubyte", &idx(0x801, &[2], &[2, 0]));
    write(&folder, "t10k-images-idx3-ubyte", &idx(0x803, &[1, 2, 3], &[255; 6]));
    write(&folder, "t10k-labels-idx1-ubyte", &idx(0x801, &[1], &[1]));
    folder
}

fn write(folder: &TempDir, name: &str, bytes: &[u8]) {
    std::fs::write(folder.path().join(name), bytes).unwrap();
}

fn gzip(folder: &TempDir, name: &str, bytes: &[u8], keep: usize) {
    std::fs::remove_file(folder.path().join(name)).ok();
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    let packed = encoder.finish().unwrap();
    write(folder, &format!("{name}.gz"), &packed[..packed.len().min(keep)]);
}

fn load(text: &str) -> Result<DataSet, String> {
    text.parse::<DataSource>().unwrap().load(1).map_err(|error| error.to_string())
}

fn load_idx(folder: &TempDir) -> Result<DataSet, String> {
    load(&format!("idx:{}", folder.path().display()))
}

#[test]
fn idx_files_are_read_under_the_names_that_archives_of_them_have() {
    let folder = idx_folder();
    let expected = load_idx(&folder).unwrap();
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        let dotted = path.file_name().unwrap().to_str().unwrap().replace("-idx", ".idx");
        std::fs::rename(&path, folder.path().join(dotted)).unwrap();
    }
    let found = load_idx(&folder).unwrap();
    assert_eq!((found.train, found.test), (expected.train, expected.test));
    std::fs::remove_file(folder.path().join("train-labels.idx1-ubyte")).unwrap();
    assert!(load_idx(&folder).unwrap_err().contains("train-labels-idx1-ubyte"));
}

#[test]
fn idx_files_are_read_plain_or_gzipped_into_samples_between_minus_one_and_one() {
    let folder = idx_folder();
    let plain = load_idx(&folder).unwrap();
    assert_eq!(plain.train.shape(), SampleShape::Image { channels: 1, height: 2, width: 3 });
    assert_eq!((plain.train.labels(), plain.test.labels()), (&[2, 0][..], &[1][..]));
    assert_eq!((plain.train.classes(), plain.card.classes().len()), (3, 3));

    let pixels: Vec<u8> = (0..12).map(|pixel| pixel * 20).collect();
    gzip(&folder, "train-images-idx3-ubyte", &idx(0x803, &[2, 2, 3], &pixels), usize::MAX);
    assert_eq!(load_idx(&folder).unwrap(), plain);
}

#[test]
fn a_damaged_idx_file_is_named_together_with_what_is_wrong() {
    let images = |sizes: &[u32], count: usize| idx(0x803, sizes, &vec![7; count]);
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("train-images-idx3-ubyte", images(&[2, 2, 3], 9), "is truncated: 3 of 12 bytes are missing"),
        ("train-images-idx3-ubyte", images(&[2, 2, 3], 13), "has bytes after the 12 its header announces"),
        ("train-images-idx3-ubyte", images(&[3, 2, 3], 18), "holds 3 images, but"),
        ("train-images-idx3-ubyte", vec![0, 0, 8], "is truncated: 1 of 4 bytes are missing"),
        ("train-images-idx3-ubyte", images(&[u32::MAX; 3], 9), "values, more than the 1073741824 accepted"),
        ("train-images-idx3-ubyte", images(&[1 << 10, 1 << 10, 1 << 10], 9), "is truncated: 1073741815 of 1073741824"),
        (
            "train-labels-idx1-ubyte",
            idx(0x803, &[2], &[1, 1]),
            "is not an IDX file of labels: it starts with 0x00000803, not 0x00000801",
        ),
        ("t10k-images-idx3-ubyte", images(&[1, 3, 2], 6), "has images of 1x3x2, but the training images are 1x2x3"),
    ];
    for (name, bytes, message) in cases {
        let folder = idx_folder();
        write(&folder, name, &bytes);
        let error = load_idx(&folder).unwrap_err();
        assert!(error.contains(name) && error.contains(message), "{error}\nshould say: {message}");
    }
}

#[test]
fn a_gzipped_file_cut_short_says_how_much_is_missing() {
    let folder = idx_folder();
    // Noise does not compress: half of the file is half of the pixels.
    let mut noise = vec![0; 6_000];
    ChaCha8Rng::seed_from_u64(1).fill_bytes(&mut noise);
    gzip(&folder, "train-images-idx3-ubyte", &idx(0x803, &[2, 50, 60], &noise), 3_000);
    let error = load_idx(&folder).unwrap_err();
    assert!(error.contains("train-images-idx3-ubyte.gz is truncated") && error.contains("of 6000 bytes"), "{error}");
}

#[test]
fn a_missing_idx_file_is_named_in_both_forms() {
    let folder = idx_folder();
    std::fs::remove_file(folder.path().join("t10k-labels-idx1-ubyte")).unwrap();
    let error = load_idx(&folder).unwrap_err();
    assert!(error.ends_with("has no t10k-labels-idx1-ubyte and no t10k-labels-idx1-ubyte.gz"), "{error}");
}

/// Loads a table of this text; returns the result and the folder that keeps the file.
fn table(text: &str, options: &str) -> (Result<DataSet, String>, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    write(&folder, "table.csv", text.as_bytes());
    (load(&format!("csv:{}/table.csv{options}", folder.path().display())), folder)
}

const PLAIN: &str = "1,10,cat\n2,20,dog\n3,30,cat\n4,40,eel\n5,50,dog\n6,60,cat\n";

#[test]
fn a_table_is_read_with_or_without_header_and_with_its_label_anywhere() {
    let (expected, _folder) = table(PLAIN, "");
    let expected = expected.unwrap();
    assert_eq!(expected.card.classes(), ["cat", "dog", "eel"]);
    assert_eq!(expected.card.columns(), ["x1", "x2"]);
    assert_eq!(expected.train.shape(), SampleShape::Flat { features: 2 });
    assert_eq!((expected.train.len(), expected.test.len()), (5, 1));

    let header = format!("weight,size,animal\n{PLAIN}");
    let spaced = PLAIN.replace(',', " , ");
    let label_first = "cat,1,10\ndog,2,20\ncat,3,30\neel,4,40\ndog,5,50\ncat,6,60\n";
    for (text, options, columns) in [
        (header.as_str(), "", ["weight", "size"]),
        (header.as_str(), ",label=animal", ["weight", "size"]),
        (header.as_str(), ",label=3", ["weight", "size"]),
        (PLAIN, ",label=3", ["x1", "x2"]),
        (spaced.as_str(), "", ["x1", "x2"]),
        (label_first, ",label=1", ["x1", "x2"]),
    ] {
        let (found, _folder) = table(text, options);
        let found = found.unwrap();
        assert_eq!((&found.train, &found.test), (&expected.train, &expected.test), "{options} of\n{text}");
        assert_eq!(found.card.columns(), columns, "{options} of\n{text}");
    }
}

#[test]
fn numeric_labels_are_ordered_by_value_and_words_by_the_alphabet() {
    let (data, _folder) = table("1,10\n2,9\n3,-1\n4,10\n5,9\n", "");
    assert_eq!(data.unwrap().card.classes(), ["-1", "9", "10"]);
    let (data, _folder) = table("1,10\n2,9\n3,none\n4,10.0\n5,9\n", "");
    assert_eq!(data.unwrap().card.classes(), ["10", "9", "none"], "10.0 is 10");
}

#[test]
fn characters_that_look_the_same_are_the_same() {
    let (data, _folder) = table("size,caf\u{e9}\n1,\u{e9}\n2,e\u{301}\n3,x\n4,\u{e9}\n5,x\n", ",label=caf\u{e9}");
    assert_eq!(data.unwrap().card.classes(), ["x", "\u{e9}"]);
    let (data, _folder) = table("size,cafe\u{301}\n1,a\n2,b\n3,a\n4,b\n5,a\n", ",label=caf\u{e9}");
    assert_eq!(data.unwrap().card.classes(), ["a", "b"]);
}

#[test]
fn a_damaged_table_is_named_with_the_line_and_the_column() {
    let cases = [
        ("1,2,a\n1,?,b\n", "", "line 2, column 2: \"?\" is not a finite number"),
        ("h1,h2,c\n1,2,a\nx,2,b\n", "", "line 3, column 1 (h1): \"x\" is not a finite number"),
        ("1,2,a\n1,inf,b\n", "", "line 2, column 2: \"inf\" is not a finite number"),
        ("1,2,a\n1,b\n", "", "line 2: 2 cells where the first line has 3"),
        ("a\nb\n", "", "line 1: a label and at least one feature are needed"),
        ("1,2,a\n", ",label=4", "has no label column number 4: its 3 columns are numbered from 1"),
        ("x,y,z\n1,2,3\n", ",label=w", "has no label column named \"w\": its 3 columns are x, y, z"),
        ("1,1,a\n2,3,b\n", "", "holds 2 samples in 2 classes: at least 5 samples and 2 classes"),
        ("1,a\n2,a\n3,a\n4,a\n5,a\n", "", "holds 5 samples in 1 classes"),
        ("h1,h1,c\n1,2,a\n", "", "line 1: the header has two columns `h1`"),
        ("h1,,c\n1,2,a\n", "", "line 1: the header has a column without a name"),
        ("1,2,a\n1,2,\n", "", "line 2, column 3: the label is missing"),
        ("1,2,a\n1,2,\"b\n1,2,c\n", "", "line 2: the label has a line break in it: is a quote not closed?"),
        ("", "", "holds 0 samples in 0 classes"),
    ];
    for (text, options, message) in cases {
        let (result, _folder) = table(text, options);
        let error = result.unwrap_err();
        assert!(error.contains("table.csv") && error.contains(message), "{error}\nshould say: {message}");
    }
    let folder = tempfile::tempdir().unwrap();
    write(&folder, "table.csv", b"1,2,a\n1,2,\xff\n");
    let error = load(&format!("csv:{}/table.csv", folder.path().display())).unwrap_err();
    assert!(error.contains("table.csv, line 2: not UTF-8 text: save the table as UTF-8"), "{error}");
    let error = load("csv:/nowhere/table.csv").unwrap_err();
    assert!(error.starts_with("cannot read /nowhere/table.csv: "), "{error}");
}

#[test]
fn the_test_part_depends_on_the_seed_and_shares_nothing_with_the_training_part() {
    let source = DataSource::Digits;
    let (first, again, other) = (source.load(1).unwrap(), source.load(1).unwrap(), source.load(2).unwrap());
    assert_eq!(first, again);
    assert_ne!(first.test, other.test);
    let counts = |data: &DataSet| -> Vec<usize> {
        data.train.class_counts().iter().zip(data.test.class_counts()).map(|(a, b)| a + b).collect()
    };
    assert_eq!(counts(&first), [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]);
    assert_eq!(counts(&first), counts(&other));
}

#[test]
fn sources_read_back_as_they_print() {
    for text in ["digits", "idx:/srv/mnist", "csv:a.csv", "csv:a,b.csv,label=species", "csv:a.csv,label=5"] {
        assert_eq!(text.parse::<DataSource>().unwrap().to_string(), text);
    }
    for text in ["", "mnist", "idx:", "csv:", "csv:,label=a"] {
        let error = text.parse::<DataSource>().unwrap_err().to_string();
        assert!(error.starts_with("unknown data source"), "{text}: {error}");
    }
    for text in ["csv:a.csv,label=", "csv:a.csv,label=0"] {
        let error = text.parse::<DataSource>().unwrap_err().to_string();
        assert!(error.ends_with("behind label= comes the name of a column or its place, counted from 1"), "{error}");
    }
}

#[test]
fn a_file_or_folder_without_its_kind_is_answered_with_the_kinds_that_fit() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("sites.csv");
    std::fs::write(&table, "a,label\n1,x\n").unwrap();
    let error = |path: &std::path::Path| path.to_str().unwrap().parse::<DataSource>().unwrap_err().to_string();
    assert!(error(&table).ends_with(&format!("csv:{0} for a table, text:{0} for text", table.display())));
    assert!(error(folder.path()).contains("this is a folder: idx:"));
}

/// Published data, in a folder beside the repository that not every machine has.
mod published {
    use super::*;

    fn path(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data").join(name)
    }

    #[test]
    #[ignore = "needs ../shared/data"]
    fn fashion_mnist_loads_as_published() {
        let folder = path("fashion-mnist");
        let data = load(&format!("idx:{}", folder.display())).unwrap();
        assert_eq!((data.train.len(), data.test.len()), (60_000, 10_000));
        assert_eq!(data.train.shape(), SampleShape::Image { channels: 1, height: 28, width: 28 });
        assert_eq!(data.train.class_counts(), [6_000; 10]);
        assert_eq!(data.test.class_counts(), [1_000; 10]);
    }

    #[test]
    #[ignore = "needs ../shared/data"]
    fn the_breast_cancer_table_splits_into_two_classes() {
        let file = path("tables/wdbc.data");
        let data = load(&format!("csv:{},label=2", file.display())).unwrap();
        assert_eq!(data.card.classes(), ["B", "M"]);
        assert_eq!((data.train.len(), data.test.len()), (456, 113));
        let benign = data.train.class_counts()[0] + data.test.class_counts()[0];
        assert_eq!(benign, 357);
    }
}
