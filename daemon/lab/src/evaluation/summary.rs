//! The summary of a suite: slots to the target, by design.

use super::records::RunRecord;
use super::suite::Suite;
use crate::simulation::{MetricTarget, SwarmProgress};

/// Designs side by side on one topology with one split.
pub(super) struct Comparison<'a> {
    /// The topology, by its name in the suite.
    pub(super) topology: &'a str,
    /// The split of the data.
    pub(super) split: &'a str,
    /// The target.
    pub(super) target: Option<MetricTarget>,
    /// The designs in the order of the suite; those without any run are left out.
    pub(super) designs: Vec<Outcomes<'a>>,
}

/// The runs of one design, one for each seed.
pub(super) struct Outcomes<'a> {
    /// The design, by its name in the suite.
    pub(super) design: &'a str,
    /// Ascending by seed.
    pub(super) records: Vec<&'a RunRecord>,
}

/// All comparisons of a suite.
pub(super) fn comparisons<'a>(suite: &'a Suite, records: &[&'a RunRecord]) -> Vec<Comparison<'a>> {
    let mut all = Vec::new();
    for topology in &suite.topology {
        for split in &suite.split {
            let of = |design: &'a str| {
                let is_of = |record: &&&RunRecord| {
                    record.topology == topology.name && record.split == split.split && record.design == design
                };
                let mut records: Vec<&RunRecord> = records.iter().filter(is_of).copied().collect();
                records.sort_by_key(|record| record.seed);
                Outcomes { design, records }
            };
            let designs = suite.design.iter().map(|design| of(&design.name));
            all.push(Comparison {
                topology: &topology.name,
                split: &split.split,
                target: split.target().ok(),
                designs: designs.filter(|outcomes| !outcomes.records.is_empty()).collect(),
            });
        }
    }
    all
}

impl Comparison<'_> {
    /// The topology, the split and the target.
    pub(super) fn heading(&self) -> String {
        let target = self.target.map(|target| format!(", to {target}")).unwrap_or_default();
        format!("{}, {}{target}", self.topology, self.split)
    }

    /// The runs of a design.
    pub(super) fn of(&self, design: &str) -> Option<&Outcomes<'_>> {
        self.designs.iter().find(|outcomes| outcomes.design == design)
    }
}

impl Outcomes<'_> {
    /// Runs that reached the target.
    pub(super) fn reached(&self) -> usize {
        self.records.iter().filter(|record| record.reached).count()
    }

    /// The mean of a number over all runs; none unless all of them reached the target.
    pub(super) fn mean(&self, of: impl Fn(&RunRecord) -> Option<f64>) -> Option<f64> {
        if self.reached() < self.records.len() {
            return None;
        }
        let values: Option<Vec<f64>> = self.records.iter().map(|record| of(record)).collect();
        values.map(|values| values.iter().sum::<f64>() / values.len() as f64)
    }

    /// Slots to the target, the mean over seeds.
    pub(super) fn slots(&self) -> Option<f64> {
        self.mean(|record| record.slots_to_target().map(|slots| slots as f64))
    }

    /// The ratio of its slots to those of another design, both as means over the same seeds.
    pub(super) fn ratio_to(&self, other: &Self) -> Option<f64> {
        let seeds = |outcomes: &Self| outcomes.records.iter().map(|record| record.seed).collect::<Vec<_>>();
        if seeds(self) != seeds(other) {
            return None;
        }
        Some(self.slots()? / other.slots()?)
    }

    /// The mean curve over seeds, at the evaluations that all of them had; `at` is the place on the axis.
    pub(super) fn mean_curve(
        &self,
        at: impl Fn(&SwarmProgress) -> f64,
        of: impl Fn(&SwarmProgress) -> Option<f64>,
    ) -> Vec<(f64, f64)> {
        let count = self.records.len() as f64;
        let means = |(x, ys): (f64, Vec<f64>)| (x, ys.iter().sum::<f64>() / count);
        self.common(at, of).map(means).collect()
    }

    /// The range over seeds at the places of the mean curve: `(x, lowest, highest)`.
    pub(super) fn spread(
        &self,
        at: impl Fn(&SwarmProgress) -> f64,
        of: impl Fn(&SwarmProgress) -> Option<f64>,
    ) -> Vec<(f64, f64, f64)> {
        let ends = |(x, ys): (f64, Vec<f64>)| {
            let lowest = ys.iter().copied().fold(f64::INFINITY, f64::min);
            (x, lowest, ys.into_iter().fold(f64::NEG_INFINITY, f64::max))
        };
        self.common(at, of).map(ends).collect()
    }

    /// The evaluations that all seeds had: their mean place on the axis, and the value of each seed.
    fn common(
        &self,
        at: impl Fn(&SwarmProgress) -> f64,
        of: impl Fn(&SwarmProgress) -> Option<f64>,
    ) -> impl Iterator<Item = (f64, Vec<f64>)> {
        let length = self.records.iter().map(|record| record.curve.len()).min().unwrap_or_default();
        let count = self.records.len() as f64;
        (0..length).map(move |index| {
            let points = || self.records.iter().map(|record| &record.curve[index]);
            let x = points().map(&at).sum::<f64>() / count;
            (x, points().map(|point| of(point).unwrap_or(f64::NAN)).collect())
        })
    }
}
