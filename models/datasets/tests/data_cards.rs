//! Cards that peers with different files must agree on, and checks of a file against one.

#![allow(clippy::unwrap_used)]

use mingle_datasets::{DataCard, DataSet, DataSource, FeatureScaling};
use tempfile::TempDir;

const SEED: u64 = 3;

/// Tables in one folder.
struct Tables(TempDir);

impl Tables {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn source(&self, name: &str, text: &str) -> DataSource {
        let path = self.0.path().join(name);
        std::fs::write(&path, text).unwrap();
        format!("csv:{}", path.display()).parse().unwrap()
    }

    fn card(&self, text: &str) -> Result<DataCard, String> {
        let raw = self.source("own.csv", text).read().map_err(|error| error.to_string())?;
        raw.card(SEED).map_err(|error| error.to_string())
    }

    fn held_to(&self, text: &str, card: &DataCard) -> Result<DataSet, String> {
        let raw = self.source("held.csv", text).read().map_err(|error| error.to_string())?;
        raw.data_set(card, SEED).map_err(|error| error.to_string())
    }
}

/// `rows` samples of two columns and the classes x, y and z, after a header.
fn founder(rows: usize) -> String {
    let row = |row: usize| format!("{},{},{}\n", row * row % 17, 1000 + 10 * (row % 7), ["x", "y", "z"][row % 3]);
    format!("radius,area,kind\n{}", (0..rows).map(row).collect::<String>())
}

#[test]
fn columns_in_another_order_are_found_by_name_and_classes_may_be_missing() {
    let tables = Tables::new();
    let card = tables.card(&founder(60)).unwrap();
    assert_eq!(
        (card.columns(), card.classes()),
        (&["radius".into(), "area".into()][..], &["x".into(), "y".into(), "z".into()][..])
    );
    let one = "radius,area,kind\n1,1010,z\n2,1020,y\n3,1030,z\n4,1040,y\n5,1050,z\n";
    let other = "kind,area,radius\nz,1010,1\ny,1020,2\nz,1030,3\ny,1040,4\nz,1050,5\n";
    let one = tables.held_to(one, &card).unwrap();
    let source = tables.source("other.csv", other).to_string() + ",label=kind";
    let other = source.parse::<DataSource>().unwrap().read().unwrap().data_set(&card, SEED).unwrap();
    assert_eq!(one, other);
    assert_eq!(one.train.classes(), 3, "x is a class of the task");
    assert!(one.train.labels().iter().chain(one.test.labels()).all(|&label| label == 1 || label == 2));
}

#[test]
fn what_the_card_has_not_is_refused_by_name() {
    let tables = Tables::new();
    let card = tables.card(&founder(60)).unwrap();
    let fails = |text: &str, words: &str| {
        let error = tables.held_to(text, &card).unwrap_err();
        assert!(error.contains("held.csv") && error.contains(words), "{error}\nshould say: {words}");
    };
    let rows = |header: &str, class: &str| format!("{header}\n1,2,{class}\n2,3,y\n3,4,x\n4,5,y\n5,6,x\n");
    fails(&rows("radius,area,kind", "w"), "the class `w`, which the task has not: its classes are `x`, `y`, `z`");
    fails(&rows("radius,size,kind", "x"), "column 2 is `size` here and `area` there");
    fails(
        &rows("area,size,kind", "x"),
        "it has a column `size`, which the task has not, and no `radius`, which is column 1 there",
    );
    fails("radius,kind\n1,x\n2,y\n3,x\n4,x\n5,y\n", "column 2 of the task is `area`, which it has not");
    fails(
        "radius,area,age,kind\n1,2,3,x\n1,2,3,y\n1,2,3,x\n1,2,3,y\n1,2,3,x\n",
        "it has a column `age`, which the task has not",
    );
    fails("1,2,x\n2,3,y\n3,4,x\n4,5,y\n5,6,x\n", "it has no first line with names");
}

#[test]
fn a_first_line_is_a_sample_a_header_or_refused_and_never_lost() {
    let tables = Tables::new();
    let without = "1,2,x\n2,3,y\n3,4,x\n4,5,y\n5,6,x\n";
    let raw = tables.source("plain.csv", without).read().unwrap();
    assert!(raw.remarks()[0].contains("called x1 to x2"), "{:?}", raw.remarks());
    let data = raw.data_set(&tables.card(without).unwrap(), SEED).unwrap();
    assert_eq!(data.train.len() + data.test.len(), 5);

    let fails = |text: &str, options: &str, words: &str| {
        let source = tables.source("odd.csv", text).to_string() + options;
        let error = source.parse::<DataSource>().unwrap().read().unwrap_err().to_string();
        assert!(error.contains("line 1") && error.contains(words), "{error}\nshould say: {words}");
    };
    // The label's name is read as a class, and the header line as a sample.
    fails(without, ",label=x", "name the label by its place, as in label=3");
    fails("1,none,x\n2,3,y\n3,4,x\n4,5,y\n5,6,x\n", "", "is it a header or a sample?");
    fails("?,n/a,x\n2,3,y\n3,4,x\n4,5,y\n5,6,x\n", "", "is also that of a sample");
}

#[test]
fn a_column_of_measurements_is_no_column_of_classes() {
    let tables = Tables::new();
    let target = |label: &dyn Fn(usize) -> String| -> String {
        (0..300).map(|row| format!("{row},{},{}\n", row % 7, label(row))).collect()
    };
    for (text, words) in [
        (target(&|row| format!("{:.1}", 3.0 + (row % 60) as f64 / 10.0)), "numbers with a fraction, such as 3.1"),
        (target(&|row| (row * 31 % 1009).to_string()), "300 samples have 300 different labels"),
        (target(&|row| format!("sample-{row}")), "300 samples have 300 different labels"),
    ] {
        let error = tables.card(&text).unwrap_err();
        assert!(error.contains("looks like a measurement") && error.contains(words), "{error}\nshould say: {words}");
    }
    // Many classes with a few samples each are classes.
    let card = tables.card(&target(&|row| (row % 100).to_string())).unwrap();
    assert_eq!(card.classes().len(), 100);
}

#[test]
fn the_scaling_is_that_of_the_card_for_every_file() {
    let tables = Tables::new();
    let card = tables.card(&founder(60)).unwrap();
    let FeatureScaling::Columns { means, deviations } = card.scaling() else { panic!("{card:?}") };
    let other = "radius,area,kind\n100,0,x\n200,0,y\n300,0,x\n400,0,y\n500,0,x\n";
    let data = tables.held_to(other, &card).unwrap();
    let own = tables.card(other).unwrap();
    assert_ne!(own.difference(&card), None);
    assert_eq!(own.constant_columns(), ["area"]);
    // Scaled by the card, not by the statistics of this file.
    let expected: Vec<f32> = [100.0, 200.0, 300.0, 400.0, 500.0]
        .map(|raw: f64| ((raw - means[0].value()) / deviations[0].value()) as f32)
        .into();
    let mut found: Vec<f32> = [&data.train, &data.test]
        .iter()
        .flat_map(|samples| (0..samples.len()).map(|index| samples.row(index)[0]))
        .collect();
    found.sort_by(f32::total_cmp);
    assert_eq!(found, expected);
}
