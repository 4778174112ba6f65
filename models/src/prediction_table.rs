//! Predictions as lines of comma separated values.

use crate::prediction::Prediction;
use mingle_datasets::DataCard;

/// A table of predictions: the class and its probability, or the quantity in its units.
///
/// ```
/// use mingle_models::{DataCard, Prediction, PredictionTable};
///
/// let names = |names: [&str; 2]| names.map(str::to_owned).to_vec();
/// let card = DataCard::of_table(names(["a", "b"]), names(["no", "yes, all"]), &[0.0; 2], &[1.0; 2])?;
/// let table = PredictionTable { card: &card, with_probabilities: false };
/// let prediction = Prediction::Class { class: 1, probabilities: vec![0.25, 0.75] };
/// assert_eq!(table.names(), "class,probability");
/// assert_eq!(table.line(&prediction), "\"yes, all\",0.750000");
/// # Ok::<(), mingle_models::CardError>(())
/// ```
pub struct PredictionTable<'a> {
    /// The names of the classes, or of the quantity.
    pub card: &'a DataCard,
    /// `true` to add a column for the probability of each class.
    pub with_probabilities: bool,
}

impl PredictionTable<'_> {
    /// The header line: the names of the columns.
    pub fn names(&self) -> String {
        if let Some(target) = self.card.target() {
            return line(&[target.name().to_owned()]);
        }
        let mut names = vec!["class".to_owned(), "probability".to_owned()];
        if self.with_probabilities {
            names.extend(self.card.classes().iter().map(|class| format!("probability of {class}")));
        }
        line(&names)
    }

    /// The line of one sample.
    ///
    /// # Panics
    ///
    /// When the class of the prediction is not on the card.
    pub fn line(&self, prediction: &Prediction) -> String {
        match prediction {
            Prediction::Quantity(quantity) => line(&[quantity.to_string()]),
            Prediction::Class { class, probabilities } => {
                let of = |probability: &f64| format!("{probability:.6}");
                let mut cells = vec![self.card.classes()[*class].clone(), of(&probabilities[*class])];
                if self.with_probabilities {
                    cells.extend(probabilities.iter().map(of));
                }
                line(&cells)
            }
        }
    }
}

/// Cells with commas between them, quoted where that is needed.
fn line(cells: &[String]) -> String {
    let mut writer = csv::WriterBuilder::new().terminator(csv::Terminator::Any(b'\n')).from_writer(Vec::new());
    // Writing to memory does not fail, and lines of text are valid UTF-8.
    let _ = writer.write_record(cells);
    let bytes = writer.into_inner().unwrap_or_default();
    String::from_utf8_lossy(&bytes).trim_end_matches('\n').to_owned()
}
