//! Contributions of sites to a common card of their tables: exact sums over their training rows, without any row.
//!
//! Sums of several sites add up to those of one table with all rows, whatever the order ([`ExactMoments`]). So mean and
//! deviation of a column are bit for bit those of the rows in one place.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::csv_classes;
use crate::exact_sum::ExactMoments;
use crate::{CardError, DataCard, Sites, Target};

/// The most training rows of all sites together.
const SAMPLES_MAX: u64 = 1 << 40;

/// The columns of a table, the kind of its label, and exact sums over its training rows.
///
/// ```
/// use mingle_datasets::{DataSource, ObjectiveKind};
///
/// let folder = tempfile::tempdir()?;
/// let site = |name: &str, rows: &str| -> Result<_, Box<dyn std::error::Error>> {
///     std::fs::write(folder.path().join(name), format!("height,kind\n{rows}"))?;
///     let data: DataSource = format!("csv:{}", folder.path().join(name).display()).parse()?;
///     Ok(data.read()?.sums(ObjectiveKind::Classification, 0)?)
/// };
/// let north = site("north.csv", "1,x\n2,x\n3,x\n4,x\n5,x\n")?;
/// let south = site("south.csv", "6,y\n7,y\n8,y\n9,y\n10,y\n")?;
/// let card = north.plus(&south)?.card()?;
/// assert_eq!(card, south.plus(&north)?.card()?);
/// assert_eq!(card.classes(), ["x", "y"]);
/// assert_eq!(card.sites().map(|sites| (sites.sites, sites.samples)), Some((2, 8)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct TableSums {
    sites: u64,
    samples: u64,
    columns: Vec<String>,
    features: Vec<ExactMoments>,
    label: LabelSums,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum LabelSums {
    /// The names of the classes, sorted.
    Classes(Vec<String>),
    /// A quantity to predict.
    Target { name: String, moments: ExactMoments },
}

/// Sums as deserialized, before they are checked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Unchecked {
    sites: u64,
    samples: u64,
    columns: Vec<String>,
    features: Vec<ExactMoments>,
    label: LabelSums,
}

impl TableSums {
    /// The sums of one table whose label stands for classes. `raw` is `[rows, columns]`, and `train` holds the numbers
    /// of the training rows.
    pub(crate) fn of_classes(columns: &[String], raw: &[f64], train: &[usize], classes: Vec<String>) -> Self {
        Self::of_site(columns, raw, train, LabelSums::Classes(classes))
    }

    /// The sums of one table whose label is a quantity, `[rows]`.
    pub(crate) fn of_quantity(
        columns: &[String],
        raw: &[f64],
        train: &[usize],
        (name, quantities): (&str, &[f64]),
    ) -> Self {
        let moments = ExactMoments::of(train.iter().map(|&row| quantities[row]));
        Self::of_site(columns, raw, train, LabelSums::Target { name: name.to_owned(), moments })
    }

    fn of_site(columns: &[String], raw: &[f64], train: &[usize], label: LabelSums) -> Self {
        let width = columns.len();
        let features = |column: usize| ExactMoments::of(train.iter().map(|&row| raw[row * width + column]));
        Self {
            sites: 1,
            samples: train.len() as u64,
            columns: columns.to_vec(),
            features: (0..width).map(features).collect(),
            label,
        }
    }

    /// The number of training rows.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// The names of the columns, in the order of the first table.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// The sums over the rows of both, in the columns of this one. Columns of the other are found by their names.
    ///
    /// # Errors
    ///
    /// [`SumsError::Column`] where one has a column that the other has not, [`SumsError::Label`] where their labels are of other kinds or
    /// names, [`SumsError::Rows`] for more rows than can be counted.
    pub fn plus(&self, other: &Self) -> Result<Self, SumsError> {
        let theirs: BTreeMap<&str, &ExactMoments> =
            other.columns.iter().map(String::as_str).zip(&other.features).collect();
        let added = self.columns.iter().zip(&self.features).map(|(name, here)| {
            let there = theirs.get(name.as_str());
            there
                .map(|there| here.plus(there))
                .ok_or_else(|| SumsError::Column { name: name.clone(), is_missing: true })
        });
        let features = added.collect::<Result<_, _>>()?;
        let ours: BTreeSet<&str> = self.columns.iter().map(String::as_str).collect();
        if let Some(name) = other.columns.iter().find(|name| !ours.contains(name.as_str())) {
            return Err(SumsError::Column { name: name.clone(), is_missing: false });
        }
        let samples = self.samples.saturating_add(other.samples);
        if samples > SAMPLES_MAX {
            return Err(SumsError::Rows);
        }
        Ok(Self {
            sites: self.sites.saturating_add(other.sites),
            samples,
            columns: self.columns.clone(),
            features,
            label: self.label.plus(&other.label)?,
        })
    }

    /// The card of all rows: means and deviations of the columns, and of a quantity to predict.
    ///
    /// # Errors
    ///
    /// Those of [`DataCard::of_table`]: fewer than two classes, names that are not valid, numbers that are too large;
    /// or a quantity that never varies.
    pub fn card(&self) -> Result<DataCard, CardError> {
        let count = self.samples;
        let columns = self.columns.clone();
        let means: Vec<f64> = self.features.iter().map(|moments| moments.mean(count)).collect();
        let deviations: Vec<f64> = self.features.iter().map(|moments| moments.deviation(count)).collect();
        let card = match &self.label {
            LabelSums::Classes(classes) => DataCard::of_table(columns, classes.clone(), &means, &deviations)?,
            LabelSums::Target { name, moments } => {
                let target = Target::new(name.clone(), moments.mean(count), moments.deviation(count))?;
                DataCard::of_regression(columns, target, &means, &deviations)?
            }
        };
        Ok(card.with_sites(Sites { sites: self.sites, samples: self.samples }))
    }
}

impl LabelSums {
    fn plus(&self, other: &Self) -> Result<Self, SumsError> {
        match (self, other) {
            (Self::Classes(here), Self::Classes(there)) => {
                let names: BTreeSet<&String> = here.iter().chain(there).collect();
                if names.len() > csv_classes::CLASSES_MAX {
                    return Err(SumsError::Classes { classes: names.len() });
                }
                Ok(Self::Classes(csv_classes::sorted(names.into_iter().cloned().collect())))
            }
            (Self::Target { name, moments }, Self::Target { name: other, moments: theirs }) if name == other => {
                Ok(Self::Target { name: name.clone(), moments: moments.plus(theirs) })
            }
            (here, there) => Err(SumsError::Label { here: here.describe(), there: there.describe() }),
        }
    }

    fn describe(&self) -> String {
        match self {
            Self::Classes(_) => "classes".to_owned(),
            Self::Target { name, .. } => format!("`{name}`, to predict"),
        }
    }
}

impl TryFrom<Unchecked> for TableSums {
    type Error = SumsError;

    fn try_from(sums: Unchecked) -> Result<Self, SumsError> {
        let Unchecked { sites, samples, columns, features, label } = sums;
        let is_counted = (1..=SAMPLES_MAX).contains(&samples) && (1..=samples).contains(&sites);
        if !is_counted || columns.is_empty() || columns.len() != features.len() {
            return Err(SumsError::Counts);
        }
        if columns.iter().collect::<BTreeSet<_>>().len() != columns.len() {
            return Err(SumsError::Counts);
        }
        let impossible = columns.iter().zip(&features).find(|(_, moments)| !moments.can_be_of(samples));
        if let Some((name, _)) = impossible {
            return Err(SumsError::Impossible { name: name.clone(), samples });
        }
        let label = match label {
            LabelSums::Classes(classes) if classes.is_empty() || classes.len() > csv_classes::CLASSES_MAX => {
                return Err(SumsError::Classes { classes: classes.len() });
            }
            LabelSums::Classes(classes) => LabelSums::Classes(csv_classes::sorted(classes)),
            LabelSums::Target { name, moments } if !moments.can_be_of(samples) => {
                return Err(SumsError::Impossible { name, samples });
            }
            target @ LabelSums::Target { .. } => target,
        };
        Ok(Self { sites, samples, columns, features, label })
    }
}

/// Errors of adding up or deserializing sums.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum SumsError {
    /// One table has a column that another has not.
    #[error("{} column `{name}`{}", if *is_missing { "they have no" } else { "they have a" }, if *is_missing { ", which those before have" } else { ", which those before have not" })]
    Column {
        /// The name of the column.
        name: String,
        /// `true` if the later table lacks it.
        is_missing: bool,
    },
    /// The labels are of different kinds or names.
    #[error("their label is {there}, and that of those before is {here}")]
    Label { here: String, there: String },
    /// There is no class, or more than can be numbered.
    #[error("{classes} classes cannot be learnt: 1 to {} at one site, and 2 at all together", csv_classes::CLASSES_MAX)]
    Classes { classes: usize },
    /// There are too many rows.
    #[error("there are more than {SAMPLES_MAX} rows")]
    Rows,
    /// The numbers of sites, rows and columns do not fit, or two columns have one name.
    #[error("the numbers of sites, rows and columns do not go together, or two columns have one name")]
    Counts,
    /// No set of numbers has such sums.
    #[error("no {samples} numbers have the sums of `{name}`: their variance would be negative")]
    Impossible { name: String, samples: u64 },
}
