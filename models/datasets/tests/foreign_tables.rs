//! Tables as other programs write them: those that are read, with remarks, and those that are refused, with a remedy.

#![allow(clippy::unwrap_used)]

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use mingle_datasets::{DataSet, DataSource, RawData};
use tempfile::TempDir;

const SEED: u64 = 2;

fn read(bytes: &[u8], options: &str) -> Result<RawData, String> {
    let folder: TempDir = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    std::fs::write(&path, bytes).unwrap();
    let source: DataSource = format!("csv:{}{options}", path.display()).parse().unwrap();
    source.read().map_err(|error| error.to_string())
}

fn load(text: &str) -> DataSet {
    let raw = read(text.as_bytes(), "").unwrap();
    let card = raw.card(SEED).unwrap();
    raw.data_set(&card, SEED).unwrap()
}

fn refused(text: &str, options: &str, words: &[&str]) {
    let error = read(text.as_bytes(), options).and_then(|raw| raw.card(SEED).map_err(|error| error.to_string()));
    let error = error.unwrap_err();
    for word in words {
        assert!(error.contains(word), "{error}\nshould say: {word}");
    }
}

fn remarks(text: &str, options: &str) -> String {
    read(text.as_bytes(), options).unwrap().remarks().join("\n")
}

/// Six rows of two columns and these labels.
fn rows(labels: [&str; 6]) -> String {
    let row = |(row, label): (usize, &str)| format!("{}.25,{},{label}\n", row * 7 % 5, row * row);
    labels.into_iter().enumerate().map(row).collect()
}

#[test]
fn whole_numbers_above_numbers_are_names_or_refused_and_never_a_sample() {
    let numbers = rows(["0", "1", "0", "1", "1", "0"]);
    for header in ["0,1,label", "1,2,label", "7,9,target", "2019,2020,sick"] {
        let text = format!("{header}\n{numbers}");
        let data = load(&text);
        assert_eq!(data.card.classes(), ["0", "1"], "{header}");
        assert_eq!(data.card.columns().join(","), header.rsplit_once(',').unwrap().0);
        assert_eq!(data.train.len() + data.test.len(), 6, "{header}");
        assert!(remarks(&text, "").contains("taken for names of columns"), "{header}");
    }
    let words = rows(["cat", "dog", "cat", "dog", "dog", "cat"]);
    let data = load(&format!("0,1,kind\n{words}"));
    assert_eq!(
        (data.card.classes(), data.card.columns()),
        (&["cat".into(), "dog".into()][..], &["0".into(), "1".into()][..])
    );

    let ambiguous = "is it a header or a sample?";
    for header in ["0,1,2", "1,2,3", "2019,2020,2021"] {
        refused(&format!("{header}\n{numbers}"), "", &["line 1", "it counts from", ambiguous]);
    }
    // A word above numbers, but no whole numbers beside it; or names that may be a sample of a rare class.
    refused(&format!("0.5,1,label\n{numbers}"), "", &["line 1", "\"label\"", ambiguous]);
    refused(&format!("7,9,eel\n{words}"), "", &["line 1", "\"eel\"", ambiguous]);
    for header in ["0.0,1.0,kind", "-1,0,kind", "01,02,kind"] {
        refused(&format!("{header}\n{words}"), "", &["line 1", "\"kind\"", ambiguous]);
    }
    // Wavelengths: names of columns that are no whole numbers.
    let spectra = |header: &str, labels: [&str; 6]| {
        let row = |(row, label): (usize, &str)| format!("0.{row},{},0.7,{label}\n", row * 7 % 5);
        format!("{header}\n{}", labels.into_iter().enumerate().map(row).collect::<String>())
    };
    let animals = ["cat", "dog", "cat", "dog", "dog", "cat"];
    refused(&spectra("400.5,401.25,407,kind", animals), "", &["line 1", "\"kind\"", ambiguous]);
    refused(&spectra("400.0,400.5,401.0,401.5", ["0", "1", "0", "1", "1", "0"]), "", &["it counts from", ambiguous]);
    assert!(remarks(&format!("1.5,2,eel\n{words}"), "").contains("the only one with the label `eel`"));
    // A sample whose class others have too, and one of a rare class.
    assert_eq!(load(&format!("1,2,cat\n{words}")).card.columns(), ["x1", "x2"]);
    assert_eq!(load(&format!("1.5,2,eel\n{words}")).card.classes(), ["cat", "dog", "eel"]);
}

#[test]
fn a_first_sample_keeps_its_place_where_the_lines_below_decide_what_it_is() {
    let text = "4,40,b\n1,10,a\n2,20,b\n3,30,a\n5,50,a\n";
    let with_header = format!("x,z,kind\n{text}");
    let (plain, named) = (load(text), load(&with_header));
    assert_eq!((plain.train, plain.test), (named.train, named.test));
}

#[test]
fn labels_that_are_equal_numbers_or_truth_values_are_one_class() {
    let classes = |labels| load(&format!("a,b,kind\n{}", rows(labels))).card.classes().to_vec();
    assert_eq!(classes(["1e+05", "100000", "99999", "2E5", "200000.0", "99999"]), ["99999", "100000", "200000"]);
    assert_eq!(classes(["01", "1", "02", "2", "1.0", "+2"]), ["1", "2"]);
    assert_eq!(classes(["TRUE", "true", "False", "FALSE", "True", "false"]), ["false", "true"]);
}

#[test]
fn a_card_whose_classes_were_written_another_way_is_still_met() {
    let text = format!("a,b,kind\n{}", rows(["TRUE", "FALSE", "TRUE", "FALSE", "TRUE", "FALSE"]));
    let card = serde_json::to_string(&load(&text).card).unwrap();
    let former = card.replace("\"false\",\"true\"", "\"FALSE\",\"TRUE\"");
    assert_ne!(card, former);
    let held = read(text.as_bytes(), "").unwrap().data_set(&serde_json::from_str(&former).unwrap(), SEED).unwrap();
    assert_eq!((held.train.len(), held.test.len()), (5, 1));
}

#[test]
fn a_missing_label_is_refused_with_its_line_and_is_no_class() {
    for missing in ["nan", "NaN", "NA", "N/A", "<NA>", "null", "NULL", "None", "?", "", "-nan", "\"\""] {
        let text = format!("a,b,kind\n{}", rows(["0", "1", missing, "0", "1", missing]));
        refused(&text, "", &["line 4", "column 3 (kind)", "the label is missing", "Leave the row out"]);
    }
    assert_eq!(
        load(&format!("a,b,kind\n{}", rows(["none", "-", "+", "none", "-", "+"]))).card.classes(),
        ["+", "-", "none"]
    );
}

#[test]
fn a_table_says_which_column_is_the_label_and_why() {
    let text = format!("p1,p2,p3\n{}", rows(["0", "1", "0", "1", "1", "0"]));
    assert_eq!(remarks(&text, ""), "label: column `p3`, the last; 6 samples, 2 classes");
    assert_eq!(remarks(&text, ",label=p2"), "label: column `p2`, as label=p2 says; 6 samples, 6 classes");
    assert_eq!(remarks(&text, ",label=3"), "label: column `p3`, as label=3 says; 6 samples, 2 classes");
    assert!(remarks(&text, ",label=1").contains("column `p1`, as label=1 says; 6 samples, 5 different values"));
    let nameless = rows(["0", "1", "0", "1", "1", "0"]);
    assert!(remarks(&nameless, "").ends_with("label: column 3, the last; 6 samples, 2 classes"));

    // Another column is called label, so the label is ambiguous.
    for name in ["label", "Target", "class", "y"] {
        let text = text.replace("p1", name);
        let ways = [format!("csv:FILE,label={name}"), "csv:FILE,label=p3".to_owned()];
        refused(&text, "", &["line 1", &ways[0], &ways[1]]);
        assert!(remarks(&text, ",label=p3").contains("column `p3`"));
    }
    assert!(remarks(&text.replace("p1,p2", "x,y"), "").contains("column `p3`, the last"), "x and y are places");
}

#[test]
fn two_columns_of_one_name_are_refused_even_if_one_is_the_label() {
    let below = rows(["0", "1", "0", "1", "1", "0"]);
    refused(&format!("a,b,a\n{below}"), "", &["line 1: the header has two columns `a`"]);
    refused(&format!("a,a,b\n{below}"), ",label=a", &["line 1: the header has two columns `a`"]);
}

#[test]
fn rows_of_nothing_are_left_out_at_the_end_and_refused_before() {
    let text = format!("a,b,kind\n{}", rows(["x", "y", "x", "y", "x", "y"]));
    for end in [",,\n,,\n", ",,,,,\n , ,\n", ",\n,,"] {
        let found = format!("{text}{end}");
        let said = remarks(&found, "");
        assert!(said.contains("6 samples") && said.contains("from line 8 on, 2, are empty and left out"), "{said}");
        assert_eq!(load(&found), load(&text));
    }
    refused(&text.replacen("\n", "\n,,\n", 2), "", &["line 2: all of its cells are empty", "remove the line"]);
}

#[test]
fn the_same_table_is_read_in_every_form_in_which_programs_write_it() {
    let text = format!("größe,tief,art\n{}", rows(["x", "y", "x", "y", "x", "y"]));
    let expected = load(&text);
    let utf16 = |text: &str, order: fn(u16) -> [u8; 2]| -> Vec<u8> {
        format!("\u{feff}{text}").encode_utf16().flat_map(order).collect()
    };
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(text.as_bytes()).unwrap();
    let forms = [
        text.replace(',', ";").into_bytes(),
        text.replace(',', "\t").into_bytes(),
        text.replace(',', " | ").into_bytes(),
        format!("sep=;\r\n{}", text.replace(',', ";").replace('\n', "\r\n")).into_bytes(),
        format!("sep=,\n{text}").into_bytes(),
        format!("\u{feff}{text}").into_bytes(),
        utf16(&text.replace(',', "\t"), u16::to_le_bytes),
        utf16(&text, u16::to_be_bytes),
        packed.finish().unwrap(),
    ];
    for form in forms {
        let raw = read(&form, "").unwrap();
        let card = raw.card(SEED).unwrap();
        assert_eq!(raw.data_set(&card, SEED).unwrap(), expected, "{:?}", String::from_utf8_lossy(&form));
    }
    let error = read(b"PK\x03\x04\x14\0\x06\0xl/workbook", "").unwrap_err();
    assert!(error.contains("t.csv") && error.contains("save it as CSV"), "{error}");
}

#[test]
fn columns_of_truth_values_are_ones_and_zeros() {
    let with = |yes: &str, no: &str| {
        let row = |row: usize| {
            format!("{},{},{}\n", if row.is_multiple_of(3) { yes } else { no }, row * row, ["a", "b"][row % 2])
        };
        load(&format!("smokes,age,kind\n{}", (0..10).map(row).collect::<String>()))
    };
    let expected = with("1", "0");
    for (yes, no) in [("True", "False"), ("TRUE", "FALSE"), ("true", "false")] {
        assert_eq!(with(yes, no), expected, "{yes}");
    }
}

#[test]
fn a_cell_that_is_no_number_is_named_with_the_way_out() {
    let with = |cell: &str| format!("a,b,kind\n1,2,x\n1,{cell},y\n");
    let place = "line 3, column 2 (b)";
    refused(&with(""), "", &[place, "the cell is empty: fill it in, or leave the row or the column out"]);
    refused(&with("NA"), "", &[place, "\"NA\" is not a finite number (the value is missing: fill it in"]);
    refused(&with("\"1,5\""), "", &[place, "behind a point, as in 1.5"]);
    refused(&with("red"), "", &[place, "write words as numbers, or leave the column out"]);
    refused(",a,kind\n0,1,x\n", "", &["line 1", "without a name, column 1", "index=False"]);
}

#[test]
fn a_path_with_a_tilde_that_no_shell_has_replaced_is_refused_with_the_right_form() {
    for text in ["csv:~/nowhere/t.csv", "text:~/nowhere.txt"] {
        let error = text.parse::<DataSource>().unwrap().read().unwrap_err().to_string();
        assert!(error.contains("~/nowhere") && error.contains("write $HOME in its place"), "{error}");
    }
}

#[test]
fn a_table_of_another_kind_is_named_and_a_last_column_without_a_name_is_refused() {
    for (first, words) in [
        ("# made by a sensor", "a remark? Leave it out"),
        ("a b kind", "separated by blanks?"),
        ("1 1:0.5 2:3", "it looks like LIBSVM"),
        ("@relation heart", "it looks like ARFF"),
        ("{\"a\": 1}", "it looks like JSON"),
        ("{\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}]}", "pandas.read_json(FILE, lines=True)"),
        ("[{\"text\": \"a\", \"label\": 0},", "it looks like JSON"),
        ("<!DOCTYPE html><title>Sign in, please</title>", "a download end on a page for people"),
        ("version https://git-lfs.github.com/spec/v1", "`git lfs pull` fetches that"),
        ("a", "are cells separated by commas"),
    ] {
        refused(&format!("{first}\n1 2 x\n"), "", &["line 1", words]);
    }
    refused("a,b,kind,\n1,2,x,\n3,4,y,\n", "", &["line 1", "the last column, 4, has no name"]);
    refused("a,kind\n\"1,234.5\",x\n", "", &["line 2", "write thousands without commas"]);
}

#[test]
fn classes_that_differ_in_case_alone_are_reported() {
    let row = |at: usize| format!("{at},{}\n", ["Yes", "yes", "no"][at % 3]);
    let said = remarks(&format!("a,kind\n{}", (0..12).map(row).collect::<String>()), "");
    assert!(
        said.contains("12 samples, 3 classes") && said.contains("the classes `Yes` and `yes` differ in case alone"),
        "{said}"
    );
}
