//! Data cards: the columns and classes of a model by name, and the scaling of raw values.
//!
//! A parameter vector does not name the column of its first weight. Peers that mix parameters must agree on it, and
//! users of a model need it. Peers compare their cards, and a model file carries one.
//!
//! ```text
//!   table:   x_j = (raw_j - mean_j) / deviation_j     0 where the deviation is 0: a column that never varied
//!   images:  x   = pixel * scale + offset
//!   text:    x   = the number of the token, which is a class
//! ```

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::decimal::Decimal;
use crate::objective::Objective;
use crate::target::NAME_MAX;
use crate::{CardDifference, CardError, SampleShape, Target, Vocabulary};

/// Columns, classes and scaling of a data set.
///
/// ```
/// use mingle_datasets::DataSource;
///
/// let card = "digits".parse::<DataSource>()?.read()?.card(0)?;
/// assert_eq!(card.classes()[3], "3");
/// assert_eq!(card.scale(0, 8.0), 0.5 - 0.3);
/// # Ok::<(), mingle_datasets::DataError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct DataCard {
    shape: SampleShape,
    classes: Vec<String>,
    columns: Vec<String>,
    scaling: FeatureScaling,
    target: Option<Target>,
    sites: Option<Sites>,
}

/// The extent of the data over which a card's scaling was computed, where it is known to be that of several sites.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sites {
    /// The number of sites.
    pub sites: u64,
    /// The number of their training rows together.
    pub samples: u64,
}

/// The map from a raw value to a feature.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum FeatureScaling {
    /// `pixel * scale + offset`.
    Pixels {
        /// The factor of a pixel.
        scale: f32,
        /// The term added afterwards.
        offset: f32,
    },
    /// `(raw - mean) / deviation` in 64-bit numbers, column by column; 0 where the deviation is 0.
    Columns {
        /// The mean of each column.
        means: Vec<Decimal>,
        /// The deviation of each column, none negative.
        deviations: Vec<Decimal>,
    },
    /// None: tokens are numbers of classes.
    Tokens,
}

/// A card as deserialized, before it is checked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Unchecked {
    shape: SampleShape,
    classes: Vec<String>,
    columns: Vec<String>,
    scaling: FeatureScaling,
    #[serde(default)]
    target: Option<Target>,
    #[serde(default)]
    sites: Option<Sites>,
}

impl DataCard {
    /// The `schema` of a file that holds a card.
    pub const SCHEMA: &str = "mingle.data-card/1";

    /// The card of images, whose pixels all have the same scaling.
    pub(crate) fn of_images(shape: SampleShape, classes: Vec<String>, (scale, offset): (f32, f32)) -> Self {
        Self {
            shape,
            classes,
            columns: Vec::new(),
            scaling: FeatureScaling::Pixels { scale, offset },
            target: None,
            sites: None,
        }
    }

    /// The card of a text: its classes are the tokens.
    ///
    /// # Errors
    ///
    /// A [`CardError`] where there are fewer than two.
    pub fn of_text(vocabulary: &Vocabulary) -> Result<Self, CardError> {
        let text = Unchecked {
            shape: SampleShape::Text { tokens: vocabulary.tokens() },
            classes: vocabulary.names(),
            columns: Vec::new(),
            scaling: FeatureScaling::Tokens,
            target: None,
            sites: None,
        };
        text.try_into()
    }

    /// The card of a table.
    ///
    /// # Errors
    ///
    /// A [`CardError`] for names that are empty, too long or not distinct, and for numbers that are not one for each
    /// column or not finite.
    pub fn of_table(
        columns: Vec<String>,
        classes: Vec<String>,
        means: &[f64],
        deviations: &[f64],
    ) -> Result<Self, CardError> {
        let shape = SampleShape::Flat { features: columns.len() };
        Unchecked { shape, classes, columns, scaling: by_column(means, deviations), target: None, sites: None }
            .try_into()
    }

    /// The card of a table for the prediction of a quantity.
    ///
    /// # Errors
    ///
    /// As [`of_table`](Self::of_table).
    pub fn of_regression(
        columns: Vec<String>,
        target: Target,
        means: &[f64],
        deviations: &[f64],
    ) -> Result<Self, CardError> {
        let shape = SampleShape::Flat { features: columns.len() };
        let scaling = by_column(means, deviations);
        Unchecked { shape, classes: Vec::new(), columns, scaling, target: Some(target), sites: None }.try_into()
    }

    /// The objective of training on such data.
    pub fn objective(&self) -> Objective {
        match self.target {
            None => Objective::Classification { classes: self.classes.len() },
            Some(_) => Objective::Regression,
        }
    }

    /// The predicted quantity of a regression.
    pub fn target(&self) -> Option<&Target> {
        self.target.as_ref()
    }

    /// The sites over whose data the scaling was computed, where the card was made of their sums.
    pub fn sites(&self) -> Option<Sites> {
        self.sites
    }

    pub(crate) fn with_sites(self, sites: Sites) -> Self {
        Self { sites: Some(sites), ..self }
    }

    pub(crate) fn without_sites(self) -> Self {
        Self { sites: None, ..self }
    }

    /// The shape of one sample.
    pub fn shape(&self) -> SampleShape {
        self.shape
    }

    /// The names of the classes, in the order of the labels; none where a quantity is predicted.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// The names of the columns, in the order of the features; empty for images.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// The map from raw values to features.
    pub fn scaling(&self) -> &FeatureScaling {
        &self.scaling
    }

    /// Feature `column` of a sample whose raw value there is `raw`.
    ///
    /// # Panics
    ///
    /// When a table has no such column.
    pub fn scale(&self, column: usize, raw: f64) -> f32 {
        match &self.scaling {
            FeatureScaling::Pixels { scale, offset } => raw as f32 * scale + offset,
            FeatureScaling::Tokens => raw as f32,
            FeatureScaling::Columns { means, deviations } => {
                let mean = means[column].value();
                let deviation = deviations[column].value();
                if deviation > 0.0 { ((raw - mean) / deviation) as f32 } else { 0.0 }
            }
        }
    }

    /// The columns that are 0 in every sample, because they never varied in the data of the scaling.
    pub fn constant_columns(&self) -> Vec<&str> {
        let FeatureScaling::Columns { deviations, .. } = &self.scaling else { return Vec::new() };
        let constant = self.columns.iter().zip(deviations).filter(|(_, deviation)| deviation.value() == 0.0);
        constant.map(|(name, _)| name.as_str()).collect()
    }

    /// The first difference in meaning between this card and `there`; `None` if both mean the same.
    pub fn difference(&self, there: &Self) -> Option<CardDifference> {
        if self.target.is_some() != there.target.is_some() {
            return Some(CardDifference::Objective { here: self.objective(), there: there.objective() });
        }
        if let (SampleShape::Text { .. }, _) | (_, SampleShape::Text { .. }) = (self.shape, there.shape)
            && let Some(difference) = self.difference_in_shape(there)
        {
            return Some(difference);
        }
        let columns = first_difference("column", &self.columns, &there.columns);
        let classes = || first_difference("class", &self.classes, &there.classes);
        columns
            .or_else(classes)
            .or_else(|| self.difference_in_shape(there))
            .or_else(|| self.difference_in_scaling(there))
            .or_else(|| Target::difference(self.target.as_ref()?, there.target.as_ref()?))
    }

    /// The first difference in meaning, but for classes at the end of the list that only the other side has. Files of
    /// images number their classes, and may lack the last ones.
    pub(crate) fn difference_but_for_missing_classes(&self, there: &Self) -> Option<CardDifference> {
        self.difference(there).and_then(|difference| match difference {
            CardDifference::Count { kind: "class", at_here: false, .. } => {
                self.difference_in_shape(there).or_else(|| self.difference_in_scaling(there))
            }
            difference => Some(difference),
        })
    }

    fn difference_in_shape(&self, there: &Self) -> Option<CardDifference> {
        let here = self.shape;
        let there = there.shape;
        (here != there).then_some(CardDifference::Shape { here, there })
    }

    fn difference_in_scaling(&self, there: &Self) -> Option<CardDifference> {
        let differ = |what: String, here: &dyn fmt::Display, there: &dyn fmt::Display| CardDifference::Scaling {
            what,
            here: here.to_string(),
            there: there.to_string(),
        };
        match (&self.scaling, &there.scaling) {
            (here, there) if here == there => None,
            (
                FeatureScaling::Columns { means, deviations },
                FeatureScaling::Columns { means: means_there, deviations: there },
            ) => {
                let name = |index: usize| format!("column {} (`{}`)", index + 1, self.columns[index]);
                let first = |here: &[Decimal], there: &[Decimal], what: &str| {
                    let index = here.iter().zip(there).position(|(here, there)| here != there)?;
                    Some(differ(format!("the {what} of {}", name(index)), &here[index], &there[index]))
                };
                first(means, means_there, "mean").or_else(|| first(deviations, there, "deviation"))
            }
            (here, there) => Some(differ("the scaling".to_owned(), here, there)),
        }
    }
}

impl TryFrom<Unchecked> for DataCard {
    type Error = CardError;

    fn try_from(card: Unchecked) -> Result<Self, CardError> {
        let Unchecked { shape, classes, columns, scaling, target, sites } = card;
        match &target {
            None if classes.len() < 2 => return Err(CardError::Classes { classes: classes.len() }),
            Some(_) if !classes.is_empty() || columns.is_empty() => {
                return Err(CardError::Target { why: "it is for tables, and has no classes beside it" });
            }
            _ => {}
        }
        check_names("class", &classes)?;
        check_names("column", &columns)?;
        let is_finite = match (&scaling, shape) {
            (FeatureScaling::Pixels { scale, offset }, SampleShape::Image { .. }) if columns.is_empty() => {
                scale.is_finite() && offset.is_finite()
            }
            (FeatureScaling::Columns { means, deviations }, SampleShape::Flat { features })
                if [means.len(), deviations.len(), columns.len()] == [features; 3] =>
            {
                means.iter().all(|mean| mean.value().is_finite())
                    && deviations.iter().all(|it| it.value().is_finite() && it.value() >= 0.0)
            }
            (FeatureScaling::Tokens, SampleShape::Text { tokens }) if columns.is_empty() && target.is_none() => {
                Vocabulary::of_names(tokens, &classes).ok_or(CardError::Tokens { tokens })?;
                true
            }
            _ => return Err(CardError::Lengths { shape, columns: columns.len() }),
        };
        if !is_finite {
            return Err(CardError::NotFinite);
        }
        Ok(Self { shape, classes, columns, scaling, target, sites })
    }
}

impl fmt::Display for FeatureScaling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pixels { scale, offset } => write!(f, "pixel * {scale} + {offset}"),
            Self::Columns { .. } => f.write_str("(raw - mean) / deviation"),
            Self::Tokens => f.write_str("the number of a token"),
        }
    }
}

fn by_column(means: &[f64], deviations: &[f64]) -> FeatureScaling {
    FeatureScaling::Columns {
        means: means.iter().map(|mean| Decimal::rounded(*mean)).collect(),
        deviations: deviations.iter().map(|deviation| Decimal::rounded(*deviation)).collect(),
    }
}

/// The first position where two lists of names differ.
fn first_difference(kind: &'static str, here: &[String], there: &[String]) -> Option<CardDifference> {
    if let Some(index) = here.iter().zip(there).position(|(here, there)| here != there) {
        let here = here[index].clone();
        let there = there[index].clone();
        return Some(CardDifference::Name { kind, number: index + 1, here, there });
    }
    let (number, at_here) = match here.len().cmp(&there.len()) {
        std::cmp::Ordering::Equal => return None,
        std::cmp::Ordering::Greater => (there.len(), true),
        std::cmp::Ordering::Less => (here.len(), false),
    };
    let name = if at_here { &here[number] } else { &there[number] };
    Some(CardDifference::Count { kind, number: number + 1, name: name.clone(), at_here })
}

fn check_names(kind: &'static str, names: &[String]) -> Result<(), CardError> {
    let mut seen = BTreeSet::new();
    for (index, name) in names.iter().enumerate() {
        let wrong = |why| CardError::Name { kind, number: index + 1, why };
        if name.is_empty() {
            return Err(wrong("it is empty"));
        }
        if name.len() > NAME_MAX || name.chars().any(char::is_control) {
            return Err(wrong("it is longer than 256 bytes, or has characters that do not print"));
        }
        if !seen.insert(name) {
            return Err(wrong("another one has the same name"));
        }
    }
    Ok(())
}

impl Vocabulary {
    /// The tokens named by the classes of a card; `None` for a card that is not of text, or whose classes name no
    /// tokens.
    pub fn of_card(card: &DataCard) -> Option<Self> {
        let SampleShape::Text { tokens } = card.shape() else { return None };
        Self::of_names(tokens, card.classes())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn card(columns: &[&str], classes: &[&str], means: &[f64]) -> DataCard {
        DataCard::of_table(names(columns), names(classes), means, &vec![2.0; means.len()]).unwrap()
    }

    #[test]
    fn the_first_difference_is_named_with_both_sides() {
        let here = card(&["a", "b", "radius"], &["x", "y"], &[0.0, 1.0, 2.0]);
        let says = |there: DataCard| here.difference(&there).unwrap().to_string();
        assert_eq!(here.difference(&here.clone()), None);
        let there = card(&["a", "b", "area"], &["y", "x"], &[0.0, 1.0, 2.0]);
        assert_eq!(says(there), "column 3 is `radius` here and `area` there");
        let there = card(&["a", "b", "radius"], &["x", "z"], &[0.0, 1.0, 2.0]);
        assert_eq!(says(there), "class 2 is `y` here and `z` there");
        let there = card(&["a", "b"], &["x", "y"], &[0.0, 1.0]);
        assert_eq!(says(there), "column 3 is `radius` here, and there is none there");
        let there = card(&["a", "b", "radius"], &["x", "y", "z"], &[0.0, 1.0, 2.0]);
        assert_eq!(says(there), "class 3 is `z` there, and there is none here");
        let there = card(&["a", "b", "radius"], &["x", "y"], &[0.0, 1.5, 2.0]);
        assert_eq!(says(there), "the mean of column 2 (`b`) is 1 here and 1.5 there");
    }

    #[test]
    fn a_column_that_never_varied_is_left_out_and_others_are_shifted_and_scaled() {
        let card = DataCard::of_table(names(&["a", "b"]), names(&["x", "y"]), &[3.0, 3.0], &[2.0, 0.0]).unwrap();
        assert_eq!((card.scale(0, 7.0), card.scale(1, 7.0)), (2.0, 0.0));
        assert_eq!(card.constant_columns(), ["b"]);
    }

    #[test]
    fn what_is_no_card_is_refused_with_the_name_at_fault() {
        let of = |columns: &[&str], classes: &[&str], means: &[f64], deviations: &[f64]| {
            DataCard::of_table(names(columns), names(classes), means, deviations).unwrap_err().to_string()
        };
        assert!(of(&["a"], &["x"], &[0.0], &[1.0]).contains("1 classes"));
        assert!(of(&["a", "a"], &["x", "y"], &[0.0; 2], &[1.0; 2]).contains("column 2 has a name"));
        assert!(of(&["a"], &["x", ""], &[0.0], &[1.0]).contains("class 2 has a name"));
        assert!(of(&["a"], &["x", "y"], &[0.0; 2], &[1.0]).contains("do not go with the scaling"));
        assert!(of(&["a"], &["x", "y"], &[0.0], &[-1.0]).contains("negative"));
    }

    #[test]
    fn a_card_survives_json_to_the_bit() {
        let means = [0.1 + 0.2, 1.0 / 3.0, 1e-200 / 7.0, -12_345.678_901_234_5, 1.6e9 + 1.0 / 7.0];
        let columns: Vec<String> = (0..means.len()).map(|column| format!("c{column}")).collect();
        let card = DataCard::of_table(columns, names(&["x", "y"]), &means, &means.map(f64::abs)).unwrap();
        let text = serde_json::to_string(&card).unwrap();
        assert_eq!(serde_json::from_str::<DataCard>(&text).unwrap(), card, "{text}");
        let images = DataCard::of_images(
            SampleShape::Image { channels: 1, height: 8, width: 8 },
            names(&["0", "1"]),
            (2.0 / 255.0, -0.3),
        );
        let text = serde_json::to_string(&images).unwrap();
        assert_eq!(serde_json::from_str::<DataCard>(&text).unwrap(), images, "{text}");
    }
}
