//! Cards from the sums of several sites: bit for bit that of one place with all rows, whatever the order.
#![allow(clippy::unwrap_used)]

use std::fmt::Write;

use mingle_datasets::{DataCard, DataSource, ObjectiveKind, RawData, TableSums};
use mingle_mutations::for_each_input;
use tempfile::TempDir;

const SEED: u64 = 5;

/// Rows whose sums depend on the order of addition in floating point.
fn rows(range: std::ops::Range<u32>) -> Vec<String> {
    let row = |row: u32| {
        let (x, y) = (f64::from(row * 7919 % 1009), f64::from(row * 104_729 % 65_537));
        let far = 1e9 + x / 7.0;
        let wild = (y - 30_000.0) * 10f64.powi(row as i32 % 19 - 9);
        format!("{far},{wild},{},{}", 0.1 * y, ["low", "middle", "high"][row as usize % 3])
    };
    range.map(row).collect()
}

fn read(folder: &TempDir, rows: &[String]) -> RawData {
    let table = rows.iter().fold("far,wild,third,class\n".to_owned(), |mut table, row| {
        writeln!(table, "{row}").unwrap();
        table
    });
    let path = folder.path().join("rows.csv");
    std::fs::write(&path, table).unwrap();
    format!("csv:{}", path.display()).parse::<DataSource>().unwrap().read().unwrap()
}

fn sums(rows: &[String]) -> TableSums {
    read(&tempfile::tempdir().unwrap(), rows).sums(ObjectiveKind::Classification, SEED).unwrap()
}

/// The rows of `all` that are not held out.
fn training_rows(all: &[String]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let raw = read(&folder, all);
    let card = raw.card(SEED).unwrap();
    let set = raw.data_set(&card, SEED).unwrap();
    let features = |row: &String| -> Vec<f32> {
        let cells: Vec<f64> = row.split(',').take(3).map(|cell| cell.parse().unwrap()).collect();
        cells.iter().enumerate().map(|(column, cell)| card.scale(column, *cell)).collect()
    };
    let kept: Vec<Vec<f32>> = (0..set.train.len()).map(|row| set.train.row(row)).collect();
    all.iter().filter(|row| kept.contains(&features(row))).cloned().collect()
}

#[test]
fn three_sites_in_any_order_have_the_card_of_one_place_bit_for_bit() {
    let parts = [rows(0..60), rows(60..215), rows(215..400)];
    let [a, b, c] = [0, 1, 2].map(|site| sums(&parts[site]));
    let card = |order: [&TableSums; 3]| order[0].plus(order[1]).unwrap().plus(order[2]).unwrap().card().unwrap();
    let first = card([&a, &b, &c]);
    for order in [[&a, &c, &b], [&b, &a, &c], [&b, &c, &a], [&c, &a, &b], [&c, &b, &a]] {
        assert_eq!(card(order), first);
    }
    assert_eq!(a.plus(&b.plus(&c).unwrap()).unwrap().card().unwrap(), first, "sums of sums");
    assert_eq!(first.sites().map(|sites| (sites.sites, sites.samples)), Some((3, 48 + 124 + 148)));
    assert_eq!(first.classes(), ["high", "low", "middle"]);

    // In one place, the same training rows come in any order.
    let mut one_place: Vec<String> = parts.iter().flat_map(|part| training_rows(part)).collect();
    assert_eq!(one_place.len(), 320);
    for _ in 0..2 {
        let all = card_of_exactly(&one_place);
        assert_eq!(all.difference(&first), None);
        assert_eq!(all.scaling(), first.scaling());
        one_place.reverse();
    }
    let cells =
        |column: usize| one_place.iter().map(move |row| row.split(',').nth(column).unwrap().parse::<f64>().unwrap());
    for column in 0..3 {
        let mean = cells(column).sum::<f64>() / 320.0;
        let deviation = (cells(column).map(|cell| (cell - mean).powi(2)).sum::<f64>() / 320.0).sqrt();
        // A value one deviation above the mean, by sums that are rounded.
        assert!((first.scale(column, mean + deviation) - 1.0).abs() < 1e-4, "column {column}");
    }
}

/// The card over these rows and no others: each is a table in which it stands five times, one of which is held out.
fn card_of_exactly(rows: &[String]) -> DataCard {
    let sites = rows.iter().map(|row| sums(&vec![row.clone(); 5]));
    sites.reduce(|all, site| all.plus(&site).unwrap()).unwrap().card().unwrap()
}

#[test]
fn columns_in_another_order_are_added_by_name_and_what_does_not_fit_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let of = |table: &str, label: &str, objective| {
        let path = folder.path().join("table.csv");
        std::fs::write(&path, table).unwrap();
        let source: DataSource = format!("csv:{}{label}", path.display()).parse().unwrap();
        source.read().unwrap().sums(objective, SEED)
    };
    let classes = |table: &str| of(table, ",label=kind", ObjectiveKind::Classification).unwrap();
    let here = classes("a,b,kind\n1,10,x\n1,10,x\n1,10,x\n1,10,x\n1,10,x\n");
    let turned = classes("kind,b,a\ny,30,3\ny,30,3\ny,30,3\ny,30,3\ny,30,3\n");
    let card = here.plus(&turned).unwrap().card().unwrap();
    assert_eq!((card.columns(), card.classes()), (&["a".into(), "b".into()][..], &["x".into(), "y".into()][..]));
    assert_eq!((card.scale(0, 3.0), card.scale(1, 10.0)), (1.0, -1.0));
    let says = |other: &TableSums| here.plus(other).unwrap_err().to_string();
    let row = |header: &str| classes(&format!("{header}\n{}", "1,2,x\n".repeat(5)));
    assert_eq!(says(&row("a,c,kind")), "they have no column `b`, which those before have");
    let wider = classes(&format!("a,b,c,kind\n{}", "1,2,3,x\n".repeat(5)));
    assert_eq!(says(&wider), "they have a column `c`, which those before have not");
    let quantity = of("a,b,price\n1,2,3\n1,2,3\n1,2,3\n1,2,3\n1,2,4\n", "", ObjectiveKind::Regression).unwrap();
    assert_eq!(says(&quantity), "their label is `price`, to predict, and that of those before is classes");
    assert!(here.card().unwrap_err().to_string().contains("1 classes cannot be learnt"), "one site has one class");
    let digits = "digits".parse::<DataSource>().unwrap().read().unwrap();
    assert!(digits.sums(ObjectiveKind::Classification, 0).unwrap_err().to_string().contains("digits is no table"));
}

#[test]
fn mutated_sums_are_refused_or_are_sums_that_numbers_can_have() {
    let seeds = [sums(&rows(0..9)), sums(&rows(0..400))].map(|sums| serde_json::to_vec(&sums).unwrap());
    let other = sums(&rows(9..30));
    for_each_input("table-sums", &seeds, |input| {
        if let Ok(read) = serde_json::from_slice::<TableSums>(input)
            && let Ok(card) = other.plus(&read).unwrap_or(read).card()
        {
            assert!((0..card.columns().len()).all(|column| !card.scale(column, 1.0).is_nan()));
        }
    });
}
